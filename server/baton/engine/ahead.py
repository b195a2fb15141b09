"""What a runner that waits does for a run to come: it looks at worktrees before anybody waits for them."""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import anyio

from baton.codex.brief import TEMPLATE
from baton.contract.errors import BatonError
from baton.engine.house import House
from baton.engine.plan import RunPlan
from baton.ledger.state import StateFolder
from baton.policy.bundle import bundle_root
from baton.policy.templating import environment
from baton.workspace import warm
from baton.workspace.git import Git
from baton.workspace.limits import Limits
from baton.workspace.locate import locate
from baton.workspace.pool import WorktreePool
from baton.workspace.reopen import private_path
from baton.workspace.repository import PrivateRepository

log = logging.getLogger(__name__)

MOST = 4
"""Worktrees that are made ready: each takes one of the system's watchers, of which a user has few."""


@dataclass(frozen=True)
class Ahead:
    """What is to be made ready: worktrees of a run at rest, for the next one in its workspace."""

    state: str
    workspace: str
    commit: str
    """What the next run will start from unless the person changes something: the workspace as the run left
    it."""
    worktrees: int

    def line(self) -> bytes:
        """Itself as one line of text."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Self:
        return cls(**json.loads(line))


def ahead_of(house: House, run_id: str) -> Ahead | None:
    """What there is to be made ready after a run; None when there is nothing, or others are at work there.

    They need the worktrees themselves, and would make new ones in place of those that are just looked at.
    Raises `BatonError`, `ValueError` for a record that cannot be read.
    """
    run = house.ledger.run(run_id)
    if any(other.repo_key == run.repo_key for other in house.ledger.unfinished_runs()):
        return None
    last = next(reversed(house.ledger.integrations(run_id)), None)
    has_landed = last is not None and last.step == "applied"
    commit = last.merged_commit if last is not None and has_landed else run.base_commit
    if commit is None:
        return None
    plan = RunPlan.model_validate(run.options)
    count = min(MOST, plan.max_parallel, len(plan.routes))
    return Ahead(str(house.state.root), run.workspace, commit, count)


class Preparation:
    """A thread that makes ready what it is asked to, until it is stopped.

    At the usual priority: what it does is bounded and done once, and a lower one could not be taken back
    when a run waits for the worktree that is just being looked at.
    """

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="ahead", daemon=True)
        self._thread.start()

    def ask(self, line: bytes) -> None:
        """Have done what the line of an `Ahead` says, later and perhaps in part: none of it is relied on."""
        self._asked.put(line)

    def stop(self) -> None:
        """Take up no further worktree, and wait for the one at hand: whoever comes finds it ready."""
        self._stopping.set()
        self._asked.put(None)
        self._thread.join()

    def _work(self) -> None:
        _load()
        while (line := self._asked.get()) is not None and not self._stopping.is_set():
            try:
                _make_ready(Ahead.read(line), self._stopping.is_set)
            except (BatonError, OSError) as error:
                log.info("nothing is made ready: %s", error)


def _load() -> None:
    """Load what a run loads only when it comes to need it."""
    anyio.run(anyio.sleep, 0)
    environment(bundle_root()).get_template(TEMPLATE)


def _make_ready(ahead: Ahead, stopped: Callable[[], bool]) -> None:
    """Nothing is made that is not there: the state folder itself may be gone by now."""
    state, git = StateFolder(Path(ahead.state)), Git.find()
    site = locate(Path(ahead.workspace), git)
    path = private_path(state, site.key)
    repo = PrivateRepository(git=git, site=site, path=path, worktrees=state.worktrees, limits=Limits())
    warm.keep_only(repo)
    WorktreePool(repo, state).make_ready(ahead.commit, ahead.worktrees, stopped)
