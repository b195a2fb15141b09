"""What need not be on disk at once is seen at once by everybody, and is there whenever later work is."""

from __future__ import annotations

import sqlite3

import pytest

from baton.ledger.records import NewEvent
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger
from ledger.samples import RUN, a_run, a_task


@pytest.fixture
def run(ledger: Ledger) -> str:
    ledger.create_run(a_run(), [a_task()])
    return RUN


def test_another_process_sees_it_and_is_woken(ledger: Ledger, run: str, state: StateFolder) -> None:
    with Ledger.open(state) as other:
        version = other.data_version()
        ledger.append_event(run, "told", durable=False)
        assert other.data_version() != version
        assert [event.kind for event in other.events(run)][-1] == "told"


def test_it_is_undone_when_its_block_raises(ledger: Ledger, run: str) -> None:
    with pytest.raises(RuntimeError), ledger.transaction(durable=False):
        ledger.append_event(run, "never")
        raise RuntimeError
    assert "never" not in [event.kind for event in ledger.events(run)]


def test_the_next_change_is_durable_again(ledger: Ledger, run: str) -> None:
    seen: list[int] = []

    def note(connection: sqlite3.Connection) -> None:
        seen.append(connection.execute("PRAGMA synchronous").fetchone()[0])

    with ledger.db.transaction(durable=False) as db:
        note(db)
        ledger.append_event(run, "inside")
        note(db)
    with ledger.db.transaction() as db:
        note(db)
        ledger.append_events(run, [NewEvent(kind="after")])
    normal, full = 1, 2
    assert seen == [normal, normal, full]
