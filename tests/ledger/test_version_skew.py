"""Programs of two versions on one ledger: the one that was there first goes on, the newer one reads it.

A runner keeps the environment it was started from, so it may still be at work when a newer server opens the
ledger and brings the schema up. Steps only add, and every statement names its columns: the older program
neither notices nor loses anything. It is stopped, with one line, only when it opens the ledger anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from baton.contract.errors import StateUnavailable
from baton.contract.states import RunState, TaskState
from baton.ledger import migrations, opening
from baton.ledger.migrations import MIGRATIONS
from baton.ledger.records import AttemptRecord, NewEvent, RunRecord
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger
from ledger.samples import RUN, a_result, a_run, a_task

BEFORE_SPARED = 3


@contextmanager
def older_program(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within the block this program knows the schema only up to its third step."""
    with monkeypatch.context() as patched:
        for module in (migrations, opening):
            patched.setattr(module, "MIGRATIONS", MIGRATIONS[:BEFORE_SPARED])
        fields = {name: field for name, field in RunRecord.model_fields.items() if name != "spared"}
        patched.setattr(RunRecord, "__pydantic_fields__", fields)
        yield


def test_an_older_runner_goes_on_after_a_newer_server_brought_the_schema_up(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with older_program(monkeypatch):
        runner = Ledger.open(state)
        runner.create_run(a_run(), [a_task()], event=NewEvent(kind="run.admitted"))
    with runner, Ledger.open(state) as server:
        assert server.run(RUN).spared is False
        server.update_run(RUN, spared=True)
        with older_program(monkeypatch):
            runner.update_run(RUN, state=RunState.RUNNING, event=NewEvent(kind="run.running"))
            runner.start_attempt(AttemptRecord(run_id=RUN, task_id="one", attempt=1))
            runner.update_task(RUN, "one", state=TaskState.DONE, result=a_result())
            runner.update_run(RUN, state=RunState.DONE, note="by the older one")
            runner.maintain()
        found = server.run(RUN)
        assert (found.state, found.note, found.spared) == (RunState.DONE, "by the older one", True)
        assert server.task(RUN, "one").result == a_result()


def test_an_older_program_that_starts_later_is_stopped_with_one_line(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    Ledger.open(state).close()
    with older_program(monkeypatch), pytest.raises(StateUnavailable, match="newer Baton") as refused:
        Ledger.open(state)
    assert "\n" not in refused.value.message
    with closing(sqlite3.connect(state.database)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_no_step_of_the_schema_takes_anything_away() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        known: set[tuple[str, str]] = set()
        for step in MIGRATIONS:
            step(db)
            names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            now = {(table, row[1]) for table in names for row in db.execute(f"PRAGMA table_info({table})")}
            assert known <= now
            known = now
