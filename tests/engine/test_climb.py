"""The class of trouble: what of a result decides which rule of the ladder holds."""

from __future__ import annotations

import pytest

from baton.contract.claim import Claim, ClaimStatus
from baton.contract.evidence import (
    AttemptResult,
    ChangeShown,
    CheckResult,
    CheckStatus,
    Evidence,
    ScopeEvidence,
    TurnFailure,
    Violation,
)
from baton.contract.states import Enforcement, FailureClass, Verdict
from baton.engine.climb import trouble_of
from baton.policy.ladder import Trouble

PASS = Claim(status=ClaimStatus.PASS, summary="", files_changed=[], checks_run=[], blockers=[], notes=[])
FAILED_CHECK = CheckResult(
    command="c", argv=["c"], tree="t", status=CheckStatus.FAILED, seconds=0, sandboxed=True
)
CHANGE = ChangeShown(path="a", kind="added")


def _claim(status: ClaimStatus) -> Claim:
    return PASS.model_copy(update={"status": status})


def _result(
    verdict: Verdict,
    claim: Claim | None = PASS,
    *,
    failure: FailureClass | None = None,
    violation: bool = False,
    checks: tuple[CheckResult, ...] = (),
) -> AttemptResult:
    scope = ScopeEvidence(
        enforcement=Enforcement.PREVENTED,
        violations=[Violation(path="x", rule="not in allowedFiles")] if violation else [],
    )
    evidence = Evidence(
        base="b",
        scope=scope,
        changes=[CHANGE],
        checks=list(checks),
        turn_failure=TurnFailure(failure_class=failure, message="m") if failure else None,
    )
    return AttemptResult(attempt=1, verdict=verdict, reasons=[], claim=claim, evidence=evidence)


@pytest.mark.parametrize(
    ("result", "trouble"),
    [
        (_result(Verdict.VERIFIED), None),
        (_result(Verdict.CANCELLED, None), None),
        (_result(Verdict.INTERRUPTED, None, failure=FailureClass.CRASH), None),
        (_result(Verdict.FAILED, violation=True, failure=FailureClass.CRASH), Trouble.OUT_OF_SCOPE),
        (_result(Verdict.FAILED, None, failure=FailureClass.AUTH), FailureClass.AUTH),
        (_result(Verdict.BLOCKED, _claim(ClaimStatus.BLOCKED)), Trouble.BLOCKED),
        (_result(Verdict.FAILED, _claim(ClaimStatus.FAILED)), Trouble.WORKER_FAILED),
        (_result(Verdict.FAILED, checks=(FAILED_CHECK,)), Trouble.CHECK_FAILED),
        (_result(Verdict.FAILED, None, checks=(FAILED_CHECK,)), Trouble.NO_REPORT),
        (_result(Verdict.NO_CHANGE, None), Trouble.NO_REPORT),
        (_result(Verdict.NO_CHANGE), Trouble.NO_CHANGE),
        (_result(Verdict.UNVERIFIED, None), Trouble.NO_REPORT),
        (_result(Verdict.UNVERIFIED), Trouble.UNPROVEN),
        (_result(Verdict.FAILED), Trouble.OUT_OF_SCOPE),
    ],
)
def test_each_result_has_its_class(result: AttemptResult, trouble: FailureClass | Trouble | None) -> None:
    assert trouble_of(result) == trouble
