"""What follows an attempt, as a table."""

from __future__ import annotations

import pytest

from baton.contract.claim import Claim, ClaimStatus
from baton.contract.evidence import (
    AttemptResult,
    CheckResult,
    CheckStatus,
    Evidence,
    ScopeEvidence,
    TurnFailure,
    Usage,
    Violation,
)
from baton.contract.states import Enforcement, FailureClass, Verdict
from baton.engine.followup import AttemptKind, follow_up
from baton.engine.usage import total_usage


def result(
    *,
    failure: FailureClass | None = None,
    check: CheckStatus | None = None,
    status: ClaimStatus = ClaimStatus.PASS,
    violation: bool = False,
    thread: str | None = "thread",
) -> AttemptResult:
    checks = (
        []
        if check is None
        else [CheckResult(command="check", argv=["check"], tree="t", status=check, seconds=0, sandboxed=True)]
    )
    found = [Violation(path="x", rule="not allowed")] if violation else []
    return AttemptResult(
        attempt=1,
        thread_id=thread,
        verdict=Verdict.FAILED,
        reasons=["r"],
        claim=Claim(status=status, summary="", files_changed=[], checks_run=[], blockers=[], notes=[]),
        evidence=Evidence(
            base="b",
            scope=ScopeEvidence(enforcement=Enforcement.PREVENTED, violations=found),
            checks=checks,
            turn_failure=None if failure is None else TurnFailure(failure_class=failure, message="m"),
        ),
    )


FIRST = [AttemptKind.FIRST]

TABLE = [
    ("a failing check on a claimed PASS", result(check=CheckStatus.FAILED), FIRST, AttemptKind.REPAIR),
    ("a repair that failed too", result(check=CheckStatus.FAILED), [*FIRST, AttemptKind.REPAIR], None),
    ("an honest failure", result(check=CheckStatus.FAILED, status=ClaimStatus.FAILED), FIRST, None),
    ("a check that could not run", result(check=CheckStatus.MISSING), FIRST, None),
    ("all is well", result(check=CheckStatus.PASSED), FIRST, None),
    ("a violation", result(check=CheckStatus.FAILED, violation=True), FIRST, None),
    ("idle", result(failure=FailureClass.IDLE_TIMEOUT), FIRST, AttemptKind.RECOVERY),
    ("too slow", result(failure=FailureClass.TURN_TIMEOUT), FIRST, AttemptKind.RECOVERY),
    ("lost process", result(failure=FailureClass.CRASH), FIRST, AttemptKind.FRESH),
    ("never started", result(failure=FailureClass.START_TIMEOUT, thread=None), FIRST, AttemptKind.FRESH),
    ("lost twice", result(failure=FailureClass.CRASH), [*FIRST, AttemptKind.FRESH], None),
    ("idle after a loss", result(failure=FailureClass.IDLE_TIMEOUT), [*FIRST, AttemptKind.FRESH], None),
    (
        "lost after a repair",
        result(failure=FailureClass.CRASH),
        [*FIRST, AttemptKind.REPAIR],
        AttemptKind.FRESH,
    ),
    (
        "a failing check after a recovery",
        result(check=CheckStatus.FAILED),
        [*FIRST, AttemptKind.RECOVERY],
        AttemptKind.REPAIR,
    ),
    ("usage limit", result(failure=FailureClass.USAGE_LIMIT), FIRST, None),
    ("not logged in", result(failure=FailureClass.AUTH), FIRST, None),
]


@pytest.mark.parametrize(
    ("seen", "past", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_what_follows(seen: AttemptResult, past: list[AttemptKind], expected: AttemptKind | None) -> None:
    following = follow_up(seen, past)
    assert (None if following is None else following.kind) == expected


def test_every_chain_ends_after_one_repair_and_one_recovery() -> None:
    for failure in (None, *FailureClass):
        past = list(FIRST)
        while (following := follow_up(result(failure=failure, check=CheckStatus.FAILED), past)) is not None:
            past.append(following.kind)
            assert len(past) <= 3


def test_unknown_usage_stays_unknown() -> None:
    total = total_usage([Usage(input_tokens=3), Usage(input_tokens=4, output_tokens=1)])
    assert total == Usage(input_tokens=7, output_tokens=1)
