"""Runs, tasks, attempts: what was written is what is read, and only one process moves a run."""

from __future__ import annotations

import pytest

from baton.contract.errors import NotFound, StateUnavailable, WrongState
from baton.contract.evidence import TaskOutcome
from baton.contract.states import Integration, RunState, TaskState, Verdict
from baton.ledger.ids import is_run_id, new_run_id
from baton.ledger.records import AttemptRecord, NewEvent
from baton.ledger.store import Ledger
from ledger.samples import RUN, a_result, a_run, a_task


def test_what_was_written_is_what_another_process_reads(ledger: Ledger) -> None:
    made = ledger.create_run(a_run(), [a_task(task_id="two", position=1), a_task()])
    with Ledger.open(ledger.db.state) as other:
        assert other.run(RUN) == made
        first, second = other.tasks(RUN)
        assert (first.task_id, second.task_id) == ("one", "two")
        assert first.contract == a_task().contract
        assert first.created_at == made.created_at > 0


def test_run_that_cannot_be_recorded_leaves_nothing(ledger: Ledger) -> None:
    with pytest.raises(Exception, match="UNIQUE"):
        ledger.create_run(a_run(), [a_task(), a_task()], event=NewEvent(kind="admitted"))
    with pytest.raises(NotFound):
        ledger.run(RUN)
    assert ledger.tasks(RUN) == []


def test_results_come_back_as_the_models_they_were(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()])
    result = a_result()
    outcome = TaskOutcome(integration=Integration.HELD, detail="conflict")
    ledger.update_task(
        RUN,
        "one",
        state=TaskState.DONE,
        verdict=Verdict.VERIFIED,
        result=result,
        outcome=outcome,
        reasons=["a"],
    )
    task = ledger.task(RUN, "one")
    assert (task.result, task.outcome, task.verdict, task.reasons) == (
        result,
        outcome,
        Verdict.VERIFIED,
        ["a"],
    )


def test_unknown_ids_are_said(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()])
    for ask in (
        lambda: ledger.run("rzzzzzzzz"),
        lambda: ledger.task(RUN, "none"),
        lambda: ledger.update_run("rzzzzzzzz", note="x"),
        lambda: ledger.update_task(RUN, "none", label="x"),
        lambda: ledger.attempt(RUN, "one", 1),
        lambda: ledger.start_attempt(AttemptRecord(run_id=RUN, task_id="none", attempt=1)),
        lambda: ledger.start_integration("rzzzzzzzz", []),
        lambda: ledger.append_event("rzzzzzzzz", "x"),
        lambda: ledger.post_command("rzzzzzzzz", "cancel"),
        lambda: ledger.command(99),
        lambda: ledger.delete_run("rzzzzzzzz"),
    ):
        with pytest.raises(NotFound):
            ask()


def test_state_that_is_not_expected_refuses_and_changes_nothing(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()])
    ledger.update_run(RUN, expect=[RunState.QUEUED], state=RunState.RUNNING)
    with pytest.raises(WrongState, match="is running; this is possible only when it is held, queued"):
        ledger.update_run(
            RUN, expect=[RunState.QUEUED, RunState.HELD], state=RunState.DONE, event=NewEvent(kind="done")
        )
    assert ledger.run(RUN).state is RunState.RUNNING
    assert ledger.events(RUN) == []
    with pytest.raises(WrongState, match="task one of run"):
        ledger.update_task(RUN, "one", expect=[TaskState.WORKING], state=TaskState.DONE)


def test_end_of_a_run_is_timed_by_its_state(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()])
    assert ledger.run(RUN).ended_at is None
    assert ledger.update_run(RUN, state=RunState.INTERRUPTED).ended_at is not None
    assert ledger.update_run(RUN, note="still").ended_at is not None
    resumed = ledger.update_run(RUN, state=RunState.RUNNING)
    assert resumed.ended_at is None
    assert ledger.run(RUN) == resumed
    assert ledger.update_task(RUN, "one", state=TaskState.CANCELLED).ended_at is not None


def test_field_that_does_not_exist_or_names_the_record_is_refused(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()])
    with pytest.raises(TypeError, match="colour"):
        ledger.update_run(RUN, colour="red")
    with pytest.raises(TypeError, match="task_id"):
        ledger.update_attempt(
            RUN, "one", ledger.start_attempt(AttemptRecord(run_id=RUN, task_id="one", attempt=1)).attempt,
            task_id="two",
        )  # fmt: skip


def test_event_and_change_are_one(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()], event=NewEvent(kind="admitted"))
    ledger.update_task(RUN, "one", state=TaskState.WORKING, event=NewEvent(kind="working", task_id="one"))
    assert [(event.seq, event.kind) for event in ledger.events(RUN)] == [(1, "admitted"), (2, "working")]


def test_several_changes_in_one_transaction_stand_or_fall_together(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()])

    def fail_in_the_middle() -> None:
        with ledger.transaction():
            ledger.update_run(RUN, state=RunState.RUNNING)
            assert ledger.run(RUN).state is RunState.RUNNING
            ledger.update_task(RUN, "none", state=TaskState.WORKING)

    with pytest.raises(NotFound):
        fail_in_the_middle()
    assert ledger.run(RUN).state is RunState.QUEUED


def test_inner_change_that_fails_is_undone_alone(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()])
    with ledger.transaction():
        ledger.append_event(RUN, "before")
        with pytest.raises(ZeroDivisionError), ledger.transaction():
            ledger.append_event(RUN, "inside")
            1 / 0  # noqa: B018
        ledger.append_event(RUN, "after")
    assert [event.kind for event in ledger.events(RUN)] == ["before", "after"]


def test_attempts_keep_how_far_they_came(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()])
    ledger.start_attempt(AttemptRecord(run_id=RUN, task_id="one", attempt=1))
    ledger.update_attempt(RUN, "one", 1, step="captured", worktree="/w", commit="c", data={"turn": 3})
    ledger.start_attempt(AttemptRecord(run_id=RUN, task_id="one", attempt=2, kind="repair"))
    first, second = ledger.attempts(RUN, "one")
    assert (first.step, first.worktree, first.commit, first.data) == ("captured", "/w", "c", {"turn": 3})
    assert (second.kind, second.step) == ("repair", "planned")
    assert ledger.attempts(RUN) == [first, second]


def test_tries_to_integrate_are_numbered(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()])
    first = ledger.start_integration(RUN, ["one"], workspace_commit="w")
    ledger.update_integration(RUN, first.number, step="moved", checks=a_result().evidence.checks)
    second = ledger.start_integration(RUN, ["one"])
    assert [(one.number, one.step) for one in ledger.integrations(RUN)] == [(1, "moved"), (2, "planned")]
    assert second.number == 2
    assert ledger.integrations(RUN)[0].checks == a_result().evidence.checks


def test_runs_are_listed_newest_first_and_by_what_is_asked(ledger: Ledger) -> None:
    ids = [f"raaaaaaa{letter}" for letter in "abc"]
    for run_id in ids:
        ledger.create_run(a_run(run_id, workspace=f"/{run_id}"), [])
    ledger.update_run(ids[0], state=RunState.RUNNING)
    ledger.update_run(ids[1], state=RunState.DONE)
    assert [run.run_id for run in ledger.runs()] == ids[::-1]
    assert [run.run_id for run in ledger.runs(2)] == ids[:0:-1]
    assert [run.run_id for run in ledger.runs(workspace=f"/{ids[1]}")] == [ids[1]]
    assert {run.run_id for run in ledger.unfinished_runs()} == {ids[0], ids[2]}
    assert ledger.runs(states=[]) == []


def test_document_of_another_version_is_said_in_one_line(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()])
    with ledger.db.transaction() as db:
        db.execute("""UPDATE tasks SET contract = json_set(contract, '$.fromTheFuture', 1)""")
    with pytest.raises(StateUnavailable, match=r"TaskRecord rabcdefgh, one .*cannot be read by this version"):
        ledger.tasks(RUN)


def test_run_ids_are_short_and_typable() -> None:
    ids = {new_run_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(is_run_id(one) for one in ids)
    assert not is_run_id("r../../etc")
