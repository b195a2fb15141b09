"""How results are told: short when all is well, never long, and never without what matters."""

from __future__ import annotations

import pytest

from baton.contract.claim import Claim, ClaimStatus
from baton.contract.evidence import (
    AttemptResult,
    ChangeShown,
    CheckResult,
    CheckStatus,
    Evidence,
    Route,
    ScopeEvidence,
    TaskOutcome,
    Usage,
    Violation,
)
from baton.contract.states import Enforcement, Integration, RunState, TaskState, Verdict
from baton.contract.task import Mode, Task
from baton.engine.plan import RunPlan
from baton.engine.present import present_run
from baton.engine.shorten import MAX_ANSWER, size
from baton.ledger.records import RunRecord, TaskRecord

BASE = "0" * 40


def _run(state: RunState, detail: str = "compact") -> RunRecord:
    return RunRecord(
        run_id="rabcdefgh",
        workspace="/w",
        repo_key="k",
        state=state,
        mode=Mode.PARALLEL,
        session={},
        policy={},
        options=RunPlan.model_validate({"routes": {}, "result_detail": detail}).wire(),
        program="0",
    )


def _task(
    number: int, verdict: Verdict, integration: Integration | None, result: AttemptResult | None
) -> TaskRecord:
    name = f"task-{number}"
    return TaskRecord(
        run_id="rabcdefgh",
        task_id=name,
        position=number,
        state=TaskState.DONE,
        contract=Task(objective="o", allowed_files=["src"], id=name),
        verdict=verdict,
        reasons=result.reasons if result else [],
        result=result,
        outcome=TaskOutcome(integration=integration),
        kept=f"refs/runs/rabcdefgh/tasks/{name}/1",
    )


def _result(verdict: Verdict, text: str, many: int) -> AttemptResult:
    check = CheckResult(
        command=f"pytest {text}",
        argv=["pytest"],
        tree=BASE,
        status=CheckStatus.PASSED if verdict is Verdict.VERIFIED else CheckStatus.FAILED,
        exit_code=1,
        seconds=1.0,
        sandboxed=True,
        detail=text,
        tail=text * 10,
    )
    return AttemptResult(
        attempt=1,
        verdict=verdict,
        reasons=[text] * many,
        claim=Claim(
            status=ClaimStatus.PASS,
            summary=text,
            files_changed=[],
            checks_run=[],
            blockers=[text] * many,
            notes=[],
        ),
        evidence=Evidence(
            base=BASE,
            changes=[ChangeShown(path=f"{text}/{n}", kind="added") for n in range(many)],
            scope=ScopeEvidence(
                enforcement=Enforcement.DETECTED,
                why_detected=text,
                violations=[Violation(path=text, rule=text)] * many,
            ),
            checks=[check] * many,
            discrepancies=[text] * many,
            notices=[text] * many,
        ),
        route=Route(asked_model="gpt-6-luna", asked_effort="medium", model="gpt-6-luna", effort="medium"),
        usage=Usage(input_tokens=1, output_tokens=1),
    )


@pytest.mark.parametrize("detail", ["compact", "full"])
@pytest.mark.parametrize("text", ["x" * 4_000, "\x01" * 4_000, "\U0001f600" * 4_000, '"\\' * 2_000])
def test_the_worst_result_stays_short_and_keeps_what_matters(detail: str, text: str) -> None:
    task = _task(1, Verdict.FAILED, None, _result(Verdict.FAILED, text, 300))
    shown = present_run(_run(RunState.HELD, detail), [task], {"task-1": 2})
    assert size(shown) <= MAX_ANSWER
    assert (shown["runId"], shown["state"], shown["verdict"]) == ("rabcdefgh", "held", "failed")
    assert shown["kept"] == task.kept
    assert shown["next"]
    assert shown["reasons"]


def test_twelve_clean_results_are_told_in_3_kilobytes() -> None:
    clean = _result(Verdict.VERIFIED, "ok", 1)
    tasks = [_task(number, Verdict.VERIFIED, Integration.APPLIED, clean) for number in range(12)]
    assert size(present_run(_run(RunState.DONE), tasks, {})) <= 3_000


@pytest.mark.parametrize("count", [12, 50, 500])
def test_of_many_tasks_all_that_did_not_go_well_are_named_as_long_as_they_fit(count: int) -> None:
    clean, bad = _result(Verdict.VERIFIED, "ok", 1), _result(Verdict.FAILED, "why " * 100, 5)
    tasks = [_task(number, Verdict.VERIFIED, Integration.APPLIED, clean) for number in range(count)]
    tasks[7] = _task(7, Verdict.FAILED, None, bad)
    shown = present_run(_run(RunState.HELD), tasks, {})
    assert size(shown) <= MAX_ANSWER
    (line,) = [line for line in shown["tasks"] if line["id"] == "task-7"]
    assert line["verdict"] == "failed"
    if len(shown["tasks"]) < count:
        assert shown["counts"] == {"verified": count - 1, "failed": 1}


def test_even_hundreds_of_failures_are_told_shortly() -> None:
    bad = _result(Verdict.FAILED, "why " * 100, 5)
    shown = present_run(
        _run(RunState.HELD), [_task(number, Verdict.FAILED, None, bad) for number in range(500)], {}
    )
    assert size(shown) <= MAX_ANSWER
    assert shown["counts"] == {"failed": 500}
    assert shown["tasks"]
