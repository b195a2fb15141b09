"""`baton gc`: removes what has had its time, and only what is recorded, captured, at rest and unlocked."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from baton.contract.errors import BatonError, Busy
from baton.engine.house import House
from baton.engine.launch import runner_log
from baton.engine.recover import recover_all
from baton.engine.retention import Decided, Sized, decide
from baton.engine.sweep import sweep
from baton.ledger.locks import FileLock
from baton.ledger.records import RunRecord
from baton.policy.load import load_policy
from baton.workspace.apply import discard_backups, recover
from baton.workspace.git import Git
from baton.workspace.journal_place import journals
from baton.workspace.lock import RepositoryLock
from baton.workspace.pool import WorktreePool, free
from baton.workspace.reopen import private_path, reopen
from baton.workspace.repository import PrivateRepository

LOCK_SECONDS = 10.0


@dataclass
class Collected:
    """What a collection did, or with `dry_run` would do."""

    dry_run: bool
    removed: list[Decided] = field(default_factory=list)
    kept: list[Decided] = field(default_factory=list)
    swept: dict[str, int] = field(default_factory=dict)
    """Things that belonged to no run, by what they are."""
    freed_bytes: int = 0
    """Bytes of what was removed, without what git shares between runs."""
    faults: list[str] = field(default_factory=list)
    """What could not be removed, each in one line; the next collection tries again."""


def collect(house: House, *, days: float | None = None, dry_run: bool = False) -> Collected:
    """Collect once. `days` replaces the policy's `retention.days`.

    Runs whose runner died are recovered first. A run's record is deleted last, so a collection that is cut
    short is completed by the next one. Raises `Busy` while another process collects.
    """
    lock = FileLock(house.state.locks / "gc.lock")
    if not lock.try_acquire():
        raise Busy("another `baton gc` is at work; wait for it")
    try:
        if not dry_run:
            recover_all(house)
        policy = load_policy(house.codex_home, None)
        limit = policy.retention.days if days is None else days
        runs = [Sized(run, size_of(house, run)) for run in house.ledger.runs(-1)]
        found = Collected(dry_run=dry_run)
        git = Git.find()
        needed = house.ledger.runs_of_workflows()
        for decided in decide(runs, time.time(), limit, policy.retention.max_bytes, needed):
            _carry_out(house, git, decided, found)
        sweep(house, git, found.swept, found.faults, idle_days=limit, dry_run=dry_run)
        if not dry_run:
            house.ledger.maintain()
        return found
    finally:
        lock.release()


def size_of(house: House, run: RunRecord) -> int:
    """Bytes that go with a run: its artifacts, its ignored content kept apart, its log."""
    own = (aside_of(house, run.run_id), runner_log(house, run.run_id))
    return house.ledger.artifact_bytes(run.run_id) + sum(map(tree_bytes, own))


def aside_of(house: House, run_id: str) -> Path:
    """Where a run's ignored and nested content is kept."""
    return house.state.root / "aside" / run_id


def tree_bytes(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; 0 when it is gone."""
    if not path.is_dir() or path.is_symlink():
        return path.lstat().st_size if path.exists() else 0
    return sum(entry.lstat().st_size for entry in path.rglob("*") if entry.is_file() or entry.is_symlink())


class _Kept(Exception):
    """Raised when a run that should go must stay; the message says why."""


def _carry_out(house: House, git: Git, decided: Decided, found: Collected) -> None:
    run = decided.run
    if not decided.removed:
        found.kept.append(decided)
        return
    try:
        with _alone(house, run.run_id):
            if not found.dry_run:
                _remove(house, git, run)
    except (_Kept, BatonError, OSError) as error:
        why = error.message if isinstance(error, BatonError) else str(error)
        found.kept.append(Decided(run, decided.size, False, f"it should go, but {why}"))
        return
    found.removed.append(decided)
    found.freed_bytes += decided.size


@contextlib.contextmanager
def _alone(house: House, run_id: str) -> Iterator[None]:
    """Hold the run's locks, so that nobody works with it; their files go with a run that is gone."""
    locks = [FileLock(house.state.run_lock(run_id)), FileLock(house.state.owner_lock(run_id))]
    try:
        if not all(lock.try_acquire() for lock in locks):
            raise _Kept("a session or a runner has it")
        yield
        if not any(run.run_id == run_id for run in house.ledger.runs(-1)):
            for lock in locks:
                lock.remove()
    finally:
        for lock in locks:
            lock.release()


def _remove(house: House, git: Git, run: RunRecord) -> None:
    """Everything of one run; its record last. Raises `_Kept` while something in it must stay."""
    run = house.ledger.run(run.run_id)
    if not run.state.at_rest:
        raise _Kept(f"it is {run.state}")
    repo = reopen(house.state, run.repo_key, git)
    if repo is not None:
        _give_back_worktrees(house, repo, run.run_id)
        _close_journals(repo, run.run_id)
        repo.forget_run(run.run_id)
    elif private_path(house.state, run.repo_key).exists():
        raise _Kept("its private repository cannot be read")
    for attempt in house.ledger.attempts(run.run_id):
        if attempt.thread_id:
            for rollout in house.state.codex_home.glob(f"sessions/*/*/*/rollout-*-{attempt.thread_id}.jsonl"):
                rollout.unlink(missing_ok=True)
    for folder in (aside_of(house, run.run_id), house.state.scratch / run.run_id):
        if folder.exists():
            shutil.rmtree(folder)
    runner_log(house, run.run_id).unlink(missing_ok=True)
    house.ledger.delete_run(run.run_id)


def _give_back_worktrees(house: House, repo: PrivateRepository, run_id: str) -> None:
    for worktree, owner in list(WorktreePool(repo, house.state).reserved()):
        owning_run, _, rest = owner.partition("/")
        task_id, _, number = rest.partition("/")
        if owning_run != run_id:
            continue
        attempts = house.ledger.attempts(run_id, task_id)
        if any(attempt.commit is None and str(attempt.attempt) == number for attempt in attempts):
            raise _Kept(f"{worktree.root} holds work of it that is not captured")
        free(worktree)


def _close_journals(repo: PrivateRepository, run_id: str) -> None:
    """Remove the backups of the run's applies; an unfinished one is recovered first."""
    if not repo.site.root.is_dir():
        return
    own = [
        journal
        for journal in journals(repo.site.root, repo.site.common_dir)
        if journal.name == run_id or journal.name.startswith(f"{run_id}-")
    ]
    if own:
        with RepositoryLock(repo.site, timeout=LOCK_SECONDS):
            for journal in own:
                recover(journal)
                discard_backups(journal)
