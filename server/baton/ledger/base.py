"""What every part of the ledger stands on: the database, the clock, and events in the same transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection
from enum import StrEnum

from baton.contract.errors import NotFound, WrongState
from baton.ledger.database import Database
from baton.ledger.records import EventRecord, NewEvent
from baton.ledger.tables import EVENTS, R, Table


class Part:
    """A group of the ledger's methods over one database."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def _one(self, table: Table[R], *key: object, what: str) -> R:
        rows = self.db.read(table.select_one(), key)
        if not rows:
            raise NotFound(f"no {what}; `baton runs list` lists the runs")
        return table.read(rows[0])

    def _many(
        self, table: Table[R], where: str, values: Collection[object], order: str, index: str | None = None
    ) -> list[R]:
        return [table.read(row) for row in self.db.read(table.select(where, order, index), list(values))]

    def _write_event(self, db: sqlite3.Connection, run_id: str, event: NewEvent) -> int:
        row = db.execute("SELECT max(seq) FROM events WHERE run_id = ?", (run_id,)).fetchone()
        seq = (row[0] or 0) + 1
        record = EventRecord(run_id=run_id, seq=seq, created_at=now(), **dict(event))
        try:
            EVENTS.insert(db, record)
        except sqlite3.IntegrityError:
            raise NotFound(f"no run {run_id!r}; `baton runs list` lists the runs") from None
        return seq


def now() -> float:
    """Seconds since 1970."""
    return time.time()


def expect_state(what: str, state: StrEnum, expect: Collection[StrEnum] | None) -> None:
    """Raises `WrongState` unless the state is one of the expected ones; None expects nothing."""
    if expect is not None and state not in expect:
        allowed = ", ".join(sorted(one.value for one in expect))
        raise WrongState(f"{what} is {state.value}; this is possible only when it is {allowed}")
