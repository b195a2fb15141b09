"""The ledger: the durable record of every run, shared by all processes of Baton."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from baton.ledger.consultations import Consultations
from baton.ledger.database import Database
from baton.ledger.pauses import Pauses
from baton.ledger.pools import Pools
from baton.ledger.processes import Processes
from baton.ledger.queue import Queue
from baton.ledger.retention import Retention
from baton.ledger.reviews import Reviews
from baton.ledger.runs import Runs
from baton.ledger.state import StateFolder
from baton.ledger.stream import Stream
from baton.ledger.workflows import Workflows


class Ledger(Runs, Stream, Processes, Queue, Pauses, Retention, Pools, Consultations, Reviews, Workflows):
    """One process's door to the ledger. Safe to use from several threads; to be closed.

    Any method may raise `StateUnavailable` (disk full, read-only, damaged) and, when another process writes
    for more than 30 seconds, `Busy`; nothing was changed then.
    """

    @classmethod
    def open(cls, state: StateFolder) -> Ledger:
        """Open the ledger of a state folder, creating or migrating it as needed.

        Raises `StateUnavailable`: a newer Baton wrote it; the disk refuses; or it was damaged or has
        vanished, which is said once with where the remains are kept.
        """
        return cls(Database(state))

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[None]:
        """Several changes as one: all of them are durable when the block ends, none when it raises.

        What is not `durable` outlives every process, but not the machine; see `Database.transaction`.
        """
        with self.db.transaction(durable=durable):
            yield

    def data_version(self) -> int:
        """A number that differs whenever anything was committed since, by anyone, this object included."""
        return self.db.data_version()

    def wait_for_change(self, version: int, timeout: float) -> int:
        """Until something was committed after `version`, at most `timeout` seconds; the new version.

        Take the version, read, then wait: no change is missed.
        """
        return self.db.wait_for_change(version, timeout)

    async def changed(self, version: int, timeout: float) -> int:
        """`wait_for_change` for async callers, cancellable at any time."""
        return await self.db.changed(version, timeout)

    def maintain(self, timeout: float = 10.0) -> bool:
        """Copy the write-ahead log into the database. Whoever ends a run calls this.

        False when others kept it from being completed; that does no harm, the next one will.
        """
        return self.db.maintain(timeout)

    def close(self) -> None:
        """Idempotent."""
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
