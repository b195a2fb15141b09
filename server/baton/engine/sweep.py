"""The other half of `baton gc`: what belongs to no recorded run, and space that nothing needs any more."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from baton.contract.errors import BatonError
from baton.engine.house import House
from baton.engine.retention import DAY
from baton.ledger.locks import FileLock
from baton.runtime.collect import remove_unused
from baton.workspace.git import Git
from baton.workspace.pool import reserved_by
from baton.workspace.reopen import keys, private_path, reopen
from baton.workspace.repository import PrivateRepository

RUN_NAME = re.compile(r"(?:run-|owner-)?(r[a-z2-7]{8})(?:\.lock|\.log)?")
"""How Baton names what belongs to one run; anything else is not its to remove."""


def sweep(
    house: House,
    git: Git,
    swept: dict[str, int],
    faults: list[str],
    *,
    idle_days: float,
    dry_run: bool,
) -> None:
    """Remove leftovers that are at least a day old, and worktrees idle for `idle_days` or a day.

    Counts what went, by kind, in `swept`; what the system refuses is a line in `faults` and stops nothing.
    """
    sweeping = _Sweeping(house, git, swept, faults, min(idle_days, 1.0) * DAY, dry_run)
    sweeping.leftovers()
    sweeping.artifacts()
    for key in keys(house.state):
        sweeping.repository(key)
    sweeping.runtimes()


@dataclass
class _Sweeping:
    house: House
    git: Git
    swept: dict[str, int]
    faults: list[str]
    idle_seconds: float
    dry_run: bool

    def leftovers(self) -> None:
        """Files of runs that the ledger does not know (any more)."""
        state = self.house.state
        known = {run.run_id for run in self.house.ledger.runs(-1)}
        for kind, folder in (
            ("scratch folders", state.scratch),
            ("folders of ignored content", state.root / "aside"),
            ("logs", state.root / "logs"),
        ):
            for path in _old(folder):
                named = RUN_NAME.fullmatch(path.name)
                if named and named[1] not in known:
                    self._remove(kind, path)
        for path in _old(state.locks):
            named = RUN_NAME.fullmatch(path.name)
            if named and named[1] not in known:
                self._count("lock files", partial(_remove_lock, path))
        for path in _old(state.artifacts):
            if path.name.startswith("new-"):
                self._remove("half-written artifacts", path)

    def artifacts(self) -> None:
        """Contents that no run refers to."""
        for name, _ in list(self.house.ledger.unneeded_artifacts(self.house.artifacts)):
            self._count("artifacts", partial(self.house.artifacts.delete, name))

    def repository(self, key: str) -> None:
        """Idle worktrees and unreachable objects of one private repository, or all of it."""
        repo = reopen(self.house.state, key, self.git)
        runs = self.house.ledger.runs(-1, repo_key=key)
        if repo is None or any(not run.state.at_rest for run in runs):
            return
        try:
            for name in repo.list_worktrees():
                self._worktree(repo, name)
            if not runs and not repo.site.root.is_dir() and not repo.list_worktrees():
                self._remove(
                    "repositories of folders that are gone", private_path(self.house.state, key).parent
                )
                return
            for litter in _old(repo.path / "indexes"):
                if litter.is_dir() and litter.name.startswith("capture-"):
                    self._remove("half-done captures", litter)
            if not self.dry_run and repo.site.root.is_dir():
                repo.collect()
        except (BatonError, OSError) as error:
            self.faults.append(f"{repo.path}: {_line(error)}")

    def runtimes(self) -> None:
        """Environments of other versions that nobody runs from."""
        if not self.dry_run and self.house.state.runtime.is_dir():
            removed = remove_unused(str(self.house.state.runtime))
            if removed:
                self.swept["environments"] = len(removed)

    def _worktree(self, repo: PrivateRepository, name: str) -> None:
        lock = FileLock(self.house.state.locks / f"worktree-{name}.lock")
        if not lock.try_acquire():
            return
        try:
            known = repo.open_worktree(name)
            if known is None or reserved_by(known) is not None or not _is_old(known.admin, self.idle_seconds):
                return
            self._count("idle worktrees", lambda: repo.remove_worktree(known))
            if not self.dry_run:
                lock.remove()
        finally:
            lock.release()

    def _remove(self, kind: str, path: Path) -> None:
        self._count(kind, lambda: shutil.rmtree(path) if path.is_dir() else path.unlink())

    def _count(self, kind: str, remove: Callable[[], object]) -> None:
        """Remove one thing and count it, unless that answers False."""
        try:
            if self.dry_run or remove() is not False:
                self.swept[kind] = self.swept.get(kind, 0) + 1
        except (BatonError, OSError) as error:
            self.faults.append(f"{kind}: {_line(error)}")


def _old(folder: Path) -> Iterator[Path]:
    """What lies in a folder untouched for a day."""
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if _is_old(path, DAY):
                yield path


def _is_old(path: Path, seconds: float) -> bool:
    try:
        return time.time() - os.lstat(path).st_mtime >= seconds
    except FileNotFoundError:
        return False


def _remove_lock(path: Path) -> bool:
    lock = FileLock(path)
    if not lock.try_acquire():
        return False
    lock.remove()
    return True


def _line(error: Exception) -> str:
    return error.message if isinstance(error, BatonError) else str(error)
