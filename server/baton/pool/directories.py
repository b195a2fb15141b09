"""Which writer gets its directory now: alone on the machine, beside others of its pool, or not yet."""

from __future__ import annotations

from pathlib import Path

from baton.contract.errors import BatonError
from baton.contract.scope import ScopePlan
from baton.engine.house import House
from baton.pool.boundary import are_apart, job_plan
from baton.pool.queue import Entry
from baton.pool.recover import recover_pools
from baton.pool.writers import WriterLocks


class Directories:
    """The directories of one pool's writers. Not for several threads."""

    def __init__(self, house: House, pool_id: str, *, together: bool) -> None:
        """`together`: writers of one directory may work side by side where the sandbox keeps them apart."""
        self._house, self._pool_id, self._together = house, pool_id, together
        self._locks = WriterLocks()
        self._plans: dict[Path, dict[Entry, ScopePlan]] = {}
        self._refused: dict[Entry, str] = {}
        self.writers = 0
        """Writers that have theirs."""

    def take(self, entry: Entry) -> bool:
        """Whether a writer gets its directory now; it then has it until `give_back`.

        One that can never get it (the directory is gone, its scope leads out of it) is let through as well:
        it is not to be started, and `refusal` says why.
        """
        try:
            taken = self._take(entry)
        except BatonError as error:
            self._refused[entry] = error.message
            taken = True
        self.writers += taken
        return taken

    def refusal(self, entry: Entry) -> str | None:
        """Why a writer that was let through has no directory; None when it has."""
        return self._refused.get(entry)

    def _take(self, entry: Entry) -> bool:
        workdir = entry.job.workdir
        at_work = self._locks.writers(workdir)
        plan = job_plan(entry.job) if self._together else None
        if at_work and (plan is None or not are_apart(plan, self._plans[workdir].values())):
            return False
        if not self._locks.try_acquire(workdir):
            return False
        if not at_work and not self._is_quiet(workdir):
            self._locks.release(workdir)
            return False
        if plan is not None:
            self._plans.setdefault(workdir, {})[entry] = plan
        return True

    def give_back(self, entry: Entry) -> None:
        """The writer is done."""
        self.writers -= 1
        if self._refused.pop(entry, None) is not None:
            return
        self._plans.get(entry.job.workdir, {}).pop(entry, None)
        self._locks.release(entry.job.workdir)

    def close(self) -> None:
        """Give everything back."""
        self._locks.close()

    def _is_quiet(self, workdir: Path) -> bool:
        """Whether whoever wrote there before has really ended.

        While the directory is ours no living pool writes in it. An attempt that is still open there belongs
        to one that was killed: what it left is ended first, by us or by whoever has taken that pool up.
        """
        for last in (False, True):
            others = map(Path, self._house.ledger.open_pool_writers(self._pool_id))
            if not any(workdir.is_relative_to(other) or other.is_relative_to(workdir) for other in others):
                return True
            if not last:
                recover_pools(self._house)
        return False
