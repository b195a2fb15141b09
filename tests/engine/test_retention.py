"""Which runs go and which stay, by age, by size, and by what somebody decided."""

from __future__ import annotations

import pytest

from baton.contract.states import RunState
from baton.engine.retention import DAY, Sized, decide
from baton.ledger.records import RunRecord

NOW = 1_000 * DAY


def a_run(name: str, days: float | None, state: RunState = RunState.DONE, **more: object) -> RunRecord:
    ended = None if days is None else NOW - days * DAY
    return RunRecord(
        run_id=name,
        workspace="/w",
        repo_key="k",
        state=state,
        ended_at=ended,
        **more,  # type: ignore[arg-type]
    )


def gone(*runs: RunRecord, size: int = 10, max_bytes: int = 10**9) -> list[str]:
    found = decide([Sized(run, size) for run in runs], NOW, 14, max_bytes)
    assert len(found) == len(runs)
    assert all(decided.why for decided in found)
    return [decided.run.run_id for decided in found if decided.removed]


def test_what_is_older_than_the_limit_goes() -> None:
    assert gone(a_run("new", 13.9), a_run("old", 14.1), a_run("older", 99)) == ["older", "old"]


def test_age_counts_for_every_state_of_rest() -> None:
    runs = [a_run(state.value, 20, state) for state in RunState if state.at_rest]
    assert set(gone(*runs)) == {"done", "held", "cancelled", "interrupted", "failed"}


@pytest.mark.parametrize("state", [state for state in RunState if not state.at_rest])
def test_a_run_at_work_stays_however_old(state: RunState) -> None:
    assert gone(a_run("r", None, state), max_bytes=0) == []


def test_what_somebody_keeps_stays_by_age_and_by_size() -> None:
    assert gone(a_run("kept", 99, spared=True), a_run("other", 99), max_bytes=0) == ["other"]


def test_beyond_the_size_the_oldest_settled_runs_go_until_the_rest_fits() -> None:
    runs = [a_run(f"r{days}", days) for days in (1, 2, 3, 4)]
    assert gone(*runs, size=10, max_bytes=25) == ["r4", "r3"]


def test_for_size_alone_nothing_goes_that_waits_for_a_decision_or_just_ended() -> None:
    runs = [
        a_run("held", 5, RunState.HELD),
        a_run("interrupted", 5, RunState.INTERRUPTED),
        a_run("failed", 5, RunState.FAILED),
        a_run("young", 0.01),
    ]
    assert gone(*runs, max_bytes=0) == []
