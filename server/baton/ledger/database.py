"""The SQLite database of the state folder: connections, transactions, waiting, checkpoints.

Three connections per object: one writes, one reads (so that reading never waits for a disk), one watches for
commits of all others, this object's own included. Every commit is on disk when it returns (WAL,
`synchronous=FULL`), but for those that say they need not be. Checkpoints happen nowhere but in `maintain`,
one process at a time and with the write lock held, so that no writer can begin the log anew under a
checkpoint; who ends a run calls it, and so does a long writer by itself when the log has grown.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import anyio

from baton.contract.errors import BatonError, Busy
from baton.ledger.faults import said_in_one_line
from baton.ledger.locks import FileLock
from baton.ledger.opening import connect, make_ready
from baton.ledger.state import StateFolder
from baton.ledger.text import storable_text

POLL_SECONDS = 0.025

WAL_BYTES = 16 * 2**20
"""A log beyond this is checkpointed by whoever commits next."""

_LARGEST = 2**63 - 1

COMMITS_BETWEEN_LOOKS = 64


class Database:
    """One open ledger database. Safe to use from several threads; not across fork."""

    def __init__(self, state: StateFolder) -> None:
        """Opens, creating or migrating as needed. Raises `StateUnavailable`; see `opening.make_ready`."""
        self.state = state
        self._path = state.database
        make_ready(state)
        with said_in_one_line(self._path):
            self._writer = connect(self._path)
            self._reader = connect(self._path)
            self._watcher = connect(self._path)
        self._write_lock = threading.RLock()
        self._read_lock = threading.Lock()
        self._watch_lock = threading.Lock()
        self._depth = 0
        self._writing_thread = 0
        self._commits = 0

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """One write transaction, durable when the block ends, undone when it raises.

        Inside another one of the same thread it is part of that: durable with it, undone alone. Raises `Busy`
        after 30 s of waiting for other writers, `StateUnavailable` when disk or database cannot take it.

        One that is not `durable` survives every end of a process as well, but not of the machine: it is on
        disk with the next durable one, which never is without it. For what means nothing after that (who
        waits for a worker, which processes run) or only tells of what follows.
        """
        with self._write_lock:
            if self._depth:
                with self._savepoint():
                    yield self._writer
                return
            with said_in_one_line(self._path), self._synchronous(durable):
                self._writer.execute("BEGIN IMMEDIATE")
                self._depth, self._writing_thread = 1, threading.get_ident()
                try:
                    yield self._writer
                    self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    raise
                finally:
                    self._depth = 0
            self._keep_log_short()

    def read(self, sql: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        """All rows of one query over committed data; inside `transaction`, over what it did so far too.

        Texts among the values may hold anything: what no text in the database can be finds nothing. Whole
        numbers may be of any size: beyond what the database can hold they count as the largest that it can.
        """
        values = [_comparable(value) for value in values]
        if self._depth and self._writing_thread == threading.get_ident():
            with said_in_one_line(self._path):
                return self._writer.execute(sql, values).fetchall()
        with self._read_lock, said_in_one_line(self._path):
            return self._reader.execute(sql, values).fetchall()

    def data_version(self) -> int:
        """A number that differs whenever anything was committed since; only to be compared on this object."""
        with self._watch_lock, said_in_one_line(self._path):
            version: int = self._watcher.execute("PRAGMA data_version").fetchone()[0]
            return version

    def wait_for_change(self, version: int, timeout: float) -> int:
        """The version once it differs from `version`, or after `timeout` seconds as it then is.

        Take the version first, then read, then wait: no change is missed.
        """
        until = time.monotonic() + timeout
        while (now := self.data_version()) == version and time.monotonic() < until:
            time.sleep(min(POLL_SECONDS, max(0.0, until - time.monotonic())))
        return now

    async def changed(self, version: int, timeout: float) -> int:
        """`wait_for_change` for async callers: looks every 25 ms, cancellable at any time."""
        until = time.monotonic() + timeout
        while (now := self.data_version()) == version and time.monotonic() < until:
            await anyio.sleep(min(POLL_SECONDS, max(0.0, until - time.monotonic())))
        return now

    def maintain(self, timeout: float = 10.0) -> bool:
        """Copy the log into the database; False when others kept it from being done completely in time."""
        lock = FileLock(self.state.maintenance_lock)
        try:
            lock.acquire(timeout)
            return self._checkpoint()
        except Busy:
            return False
        finally:
            lock.release()

    def close(self) -> None:
        """Close the connections; idempotent."""
        # The last one out copies the log as well; SQLite does that only when it is alone: no lock is needed.
        with self._write_lock, self._read_lock, self._watch_lock:
            for connection in (self._watcher, self._reader, self._writer):
                connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _synchronous(self, durable: bool) -> Iterator[None]:
        """Whether the commit inside is waited for on disk."""
        if durable:
            yield
            return
        self._writer.execute("PRAGMA synchronous=NORMAL")
        try:
            yield
        finally:
            self._writer.execute("PRAGMA synchronous=FULL")

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        name = f"inner{self._depth:d}"
        self._writer.execute(f"SAVEPOINT {name}")
        self._depth += 1
        try:
            yield
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute(f"ROLLBACK TO {name}")
            raise
        finally:
            self._depth -= 1
            if self._writer.in_transaction:
                self._writer.execute(f"RELEASE {name}")

    def _checkpoint(self) -> bool:
        with self._write_lock, said_in_one_line(self._path):
            if self._depth:
                return False
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                with self._read_lock:
                    row = self._reader.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            finally:
                self._writer.execute("ROLLBACK")
        busy, logged, copied = tuple(row)
        return bool(busy == 0 and logged == copied)

    def _keep_log_short(self) -> None:
        self._commits += 1
        if self._commits % COMMITS_BETWEEN_LOOKS == 0 and _size(wal_of(self._path)) > WAL_BYTES:
            # The commit stands, whatever becomes of this; the next one will say what is wrong with the disk.
            with suppress(BatonError):
                self.maintain(timeout=0.0)


def wal_of(database: Path) -> Path:
    return database.with_name(database.name + "-wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _comparable(value: object) -> object:
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, int):
        return max(-_LARGEST - 1, min(value, _LARGEST))
    return value
