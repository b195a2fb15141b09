"""Worktrees used again: a finished one is brought to the next commit, which is far cheaper than a new one."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from baton.contract.errors import BatonError, StateUnavailable
from baton.ledger.locks import FileLock
from baton.ledger.state import StateFolder
from baton.workspace import warm
from baton.workspace.repository import PrivateRepository
from baton.workspace.worktree import Worktree, remove_tree

log = logging.getLogger(__name__)

_RESERVED = "baton-reserved"


@dataclass
class Lease:
    """The sole use of one worktree, until it is given back.

    While it is reserved the worktree holds work that is not captured yet. The mark outlives a crash, and a
    reserved worktree is never handed out again before `free` was called for it.
    """

    worktree: Worktree
    lock: FileLock

    def reserve(self, owner: str) -> None:
        """Mark the worktree as holding `owner`'s uncaptured work."""
        (self.worktree.admin / _RESERVED).write_text(owner)

    def prepared(self, *, one_at_a_time: bool = False, sandboxed: Collection[Path] = ()) -> None:
        """Say that what is written to the worktree from here on is its user's.

        `one_at_a_time`: the user runs no two sandboxes there together. `sandboxed` are the folders that its
        sandboxes will let be written, and that therefore get their mount points now.
        """
        warm.settle(self.worktree, one_at_a_time=one_at_a_time, sandboxed=sandboxed)

    def distrust(self) -> None:
        """Have everything in the worktree looked at next time: no sandbox held what ran in it."""
        warm.forget(self.worktree)

    def give_back(self) -> None:
        """End the use of a worktree whose content is captured or worthless. May be called again."""
        free(self.worktree)
        self.lock.release()


class WorktreePool:
    """The worktrees of one private repository, shared by all processes of this user."""

    def __init__(self, repo: PrivateRepository, state: StateFolder) -> None:
        self._repo = repo
        self._state = state
        self._prefix = repo.site.key[:12]

    def lease(self, commit: str) -> Lease:
        """A worktree that holds exactly `commit`, a free one if there is any."""
        by_number = (f"{self._prefix}-{number}" for number in itertools.count(1))
        for name in itertools.chain(warm.best_for(self._repo, commit), by_number):
            lock = FileLock(self._state.locks / f"worktree-{name}.lock")
            if not lock.try_acquire():
                continue
            try:
                known = self._repo.open_worktree(name)
                if known is None or reserved_by(known) is None:
                    return Lease(self._at(commit, name, known, lock), lock)
            except BaseException:
                lock.release()
                raise
            lock.release()
        raise AssertionError("unreachable")

    def make_ready(self, commit: str, most: int, stopped: Callable[[], bool]) -> None:
        """Bring up to `most` worktrees that are there to `commit` for a later lease, and have them watched.

        None is made; those in use or with uncaptured work are passed over, and so is one that cannot be
        brought there. Each is let go of before the next is taken, and none is taken once it is `stopped`.
        Raises `BatonError` when the commit cannot be read.
        """
        names = [name for name in self._repo.list_worktrees() if name.startswith(f"{self._prefix}-")]
        left = min(most, warm.room_at_rest(self._repo, commit)) if names else 0
        for name in sorted(names, key=lambda name: (len(name), name)):  # as they are leased
            if left == 0 or stopped():
                return
            try:
                left -= self._made_ready(name, commit)
            except (BatonError, OSError) as error:
                log.info("worktree %s is not made ready: %s", name, error)

    def _made_ready(self, name: str, commit: str) -> bool:
        lock = FileLock(self._state.locks / f"worktree-{name}.lock")
        if not lock.try_acquire():
            return False
        try:
            known = self._repo.open_worktree(name)
            if known is None or reserved_by(known) is not None:
                return False
            repo = self._holding(lock)
            if not _as_known(repo, known, commit):
                repo.reset_worktree(known, commit)
                warm.take_up(repo, known, commit)
            return True
        finally:
            lock.release()

    def _at(self, commit: str, name: str, known: Worktree | None, lock: FileLock) -> Worktree:
        repo = self._holding(lock)
        if known is not None and _as_known(repo, known, commit):
            return known
        made = repo.add_worktree(name, commit)
        warm.take_up(repo, made, commit)
        return made

    def _holding(self, lock: FileLock) -> PrivateRepository:
        """The repository with a git that holds the lock as well.

        Should this process be killed, nobody else has the worktree before its last command has ended.
        """
        return replace(self._repo, git=replace(self._repo.git, held=(lock.handle(),)))

    def reserved(self) -> Iterator[tuple[Worktree, str]]:
        """Worktrees that hold uncaptured work and that no living process uses, with whose work it is."""
        for name in self._repo.list_worktrees():
            known = self._repo.open_worktree(name)
            owner = None if known is None else reserved_by(known)
            if known is None or owner is None:
                continue
            lock = FileLock(self._state.locks / f"worktree-{name}.lock")
            if lock.try_acquire():
                lock.release()
                yield known, owner


def _as_known(repo: PrivateRepository, worktree: Worktree, commit: str) -> bool:
    """Begin a use; whether the worktree is at `commit` without having been looked at in full."""
    warm.enter(worktree)
    is_known = warm.resume(repo, worktree, commit)
    log.debug("worktree %s: %s", worktree.name, "as known" if is_known else "looked at in full")
    return is_known


def reserved_by(worktree: Worktree) -> str | None:
    """Whose uncaptured work the worktree holds, None when it holds none."""
    path: Path = worktree.admin / _RESERVED
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def free(worktree: Worktree) -> None:
    """Say that the worktree's content is captured or worthless; what was kept beside it goes."""
    # What cannot be removed now is swept before its next use.
    with contextlib.suppress(OSError, StateUnavailable):
        remove_tree(worktree.scratch)
    with contextlib.suppress(FileNotFoundError):
        (worktree.admin / _RESERVED).unlink()
