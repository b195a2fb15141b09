"""Who a run belongs to: the sessions that wait for it, each holding a shared lock for as long as it lives."""

from __future__ import annotations

import time

from baton.ledger.locks import FileLock, is_held
from baton.ledger.state import StateFolder


class Ownership:
    """The runs that this process waits for. The locks end with the process, however it ends."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state
        self._locks: dict[str, FileLock] = {}

    def take(self, run_id: str) -> None:
        """Become an owner of the run; nothing when we are one already."""
        if run_id in self._locks:
            return
        lock = FileLock(self._state.owner_lock(run_id), shared=True)
        # A runner looks whether anybody holds it by taking it for an instant.
        lock.acquire(timeout=5.0)
        self._locks[run_id] = lock

    def drop(self, run_id: str) -> None:
        """Stop being an owner, when the run is at rest."""
        lock = self._locks.pop(run_id, None)
        if lock is not None:
            lock.release()

    def close(self) -> None:
        for run_id in list(self._locks):
            self.drop(run_id)


class OwnerWatch:
    """A runner's view: how long nobody has owned the run."""

    def __init__(self, state: StateFolder, run_id: str, grace: float) -> None:
        self._path = state.owner_lock(run_id)
        self._grace = grace
        self._alone_since: float | None = None

    def gone(self) -> bool:
        """True when there has been no owner for longer than the grace time."""
        if is_held(self._path):
            self._alone_since = None
            return False
        now = time.monotonic()
        if self._alone_since is None:
            self._alone_since = now
        return now - self._alone_since >= self._grace
