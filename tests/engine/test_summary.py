"""What a run of several tasks says: short at any size, and what to do about each kind of outcome."""

from __future__ import annotations

import pytest

from baton.contract.evidence import (
    AttemptResult,
    ChangeShown,
    Evidence,
    ScopeEvidence,
    TaskOutcome,
)
from baton.contract.states import Enforcement, Integration, RunState, TaskState, Verdict
from baton.contract.task import Mode, Task
from baton.engine.plan import RunPlan
from baton.engine.shorten import size
from baton.engine.summary import batch_next, present_batch
from baton.ledger.records import RunRecord, TaskRecord

WHY = "a long story of what went wrong and where; " * 10


def run(state: RunState = RunState.HELD) -> RunRecord:
    options = RunPlan.model_validate({"routes": {}}).wire()
    given = {"run_id": "rabcdefgh", "workspace": "/w", "repo_key": "k", "mode": Mode.PARALLEL, "program": "0"}
    return RunRecord(**given, state=state, session={}, policy={}, options=options)  # type: ignore[arg-type]


def task(
    name: str,
    verdict: Verdict | None,
    integration: Integration | None = None,
    *,
    changed: bool = True,
    state: TaskState = TaskState.DONE,
) -> TaskRecord:
    evidence = Evidence(
        base="0" * 40,
        changes=[ChangeShown(path="a", kind="added")] if changed else [],
        scope=ScopeEvidence(enforcement=Enforcement.PREVENTED),
    )
    result = None
    if verdict is not None:
        result = AttemptResult(attempt=1, verdict=verdict, reasons=[WHY], evidence=evidence)
    return TaskRecord(
        run_id="rabcdefgh",
        task_id=name,
        position=0,
        state=state,
        contract=Task(objective="o", allowed_files=["src"], id=name),
        verdict=verdict,
        reasons=[WHY],
        result=result,
        outcome=TaskOutcome(integration=integration, detail=WHY),
    )


@pytest.mark.parametrize(("count", "most"), [(2, 3_000), (12, 3_000), (100, 8_000), (1000, 8_000)])
@pytest.mark.parametrize("kind", ["good", "failed", "conflict"])
@pytest.mark.parametrize("width", [3, 40])
def test_a_summary_is_short_at_any_size(count: int, most: int, kind: str, width: int) -> None:
    made = {
        "good": (Verdict.VERIFIED, Integration.APPLIED),
        "failed": (Verdict.FAILED, None),
        "conflict": (Verdict.VERIFIED, Integration.CONFLICT),
    }[kind]
    tasks = [task(f"{number:0{width}}", *made) for number in range(count)]
    shown = present_batch(run(), tasks, {"runId": "rabcdefgh", "state": "held"})
    assert size(shown) <= most
    assert kind == "good" or shown["tasks"]


def test_every_kind_of_outcome_is_named_with_what_to_do() -> None:
    tasks = [
        task("fine", Verdict.VERIFIED, Integration.APPLIED),
        task("same-lines", Verdict.VERIFIED, Integration.CONFLICT),
        task("liar", Verdict.FAILED),
        task("idle", Verdict.NO_CHANGE, changed=False),
        task("later", None, state=TaskState.SKIPPED),
    ]
    said = batch_next(run(), tasks)
    assert said.startswith("landed: 1 of 5; ")
    for part in (
        "held: same-lines:",
        "not verified, kept: liar:",
        "without a result: idle:",
        "skipped: later:",
    ):
        assert part in said


def test_a_run_that_went_well_asks_for_a_review_alone() -> None:
    tasks = [task(name, Verdict.VERIFIED, Integration.APPLIED) for name in "abc"]
    assert batch_next(run(RunState.DONE), tasks) == "all landed; review: inspect_run diff"


def test_a_run_at_work_says_how_far_it_is() -> None:
    tasks = [task("a", Verdict.VERIFIED), task("b", None, state=TaskState.WORKING)]
    assert batch_next(run(RunState.RUNNING), tasks) == "wait_run (1 of 2 tasks are done)"
