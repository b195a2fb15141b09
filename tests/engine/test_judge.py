"""The verdict as a table: every rule, and the order in which they win."""

from __future__ import annotations

import itertools

import pytest

from baton.contract.claim import Claim, ClaimStatus
from baton.contract.evidence import CheckResult, CheckStatus, TurnFailure, Violation
from baton.contract.states import ChangeIntent, FailureClass, Verdict
from baton.engine.judge import Observed, discrepancies, judge


def check(status: CheckStatus, command: str = "pytest") -> CheckResult:
    return CheckResult(command=command, argv=[command], tree="t", status=status, seconds=0.1, sandboxed=True)


def claim(status: ClaimStatus = ClaimStatus.PASS, files: list[str] | None = None) -> Claim:
    return Claim(
        status=status,
        summary="done",
        files_changed=["a.py"] if files is None else files,
        checks_run=[],
        blockers=[],
        notes=[],
    )


REQUIRED, OPTIONAL, FORBIDDEN = ChangeIntent.REQUIRED, ChangeIntent.OPTIONAL, ChangeIntent.FORBIDDEN
PASSED = (check(CheckStatus.PASSED),)
FAILED = (check(CheckStatus.PASSED), check(CheckStatus.FAILED))
CRASH = TurnFailure(failure_class=FailureClass.CRASH, message="gone")
OUT = (Violation(path="b.py", rule="not allowed"),)
A = ("a.py",)

TABLE: list[tuple[str, Observed, Verdict]] = [
    ("honest", Observed(REQUIRED, A, checks=PASSED, claim=claim()), Verdict.VERIFIED),
    ("false PASS", Observed(REQUIRED, A, checks=FAILED, claim=claim()), Verdict.FAILED),
    ("no check", Observed(REQUIRED, A, claim=claim()), Verdict.UNVERIFIED),
    ("malformed report", Observed(REQUIRED, A, checks=PASSED), Verdict.UNVERIFIED),
    ("empty diff", Observed(REQUIRED, (), checks=PASSED, claim=claim()), Verdict.NO_CHANGE),
    ("empty diff, malformed", Observed(REQUIRED, (), checks=PASSED), Verdict.NO_CHANGE),
    ("empty diff allowed", Observed(OPTIONAL, (), checks=PASSED, claim=claim()), Verdict.VERIFIED),
    ("forbidden, no change", Observed(FORBIDDEN, (), checks=PASSED, claim=claim()), Verdict.VERIFIED),
    ("forbidden, change", Observed(FORBIDDEN, A, checks=PASSED, claim=claim()), Verdict.FAILED),
    (
        "blocked",
        Observed(REQUIRED, (), checks=PASSED, claim=claim(ClaimStatus.BLOCKED)),
        Verdict.BLOCKED,
    ),
    (
        "says failed",
        Observed(REQUIRED, A, checks=PASSED, claim=claim(ClaimStatus.FAILED)),
        Verdict.FAILED,
    ),
    ("violation", Observed(REQUIRED, A, violations=OUT, checks=PASSED, claim=claim()), Verdict.FAILED),
    (
        "violation beats blocked",
        Observed(REQUIRED, A, violations=OUT, claim=claim(ClaimStatus.BLOCKED)),
        Verdict.FAILED,
    ),
    ("turn failed", Observed(REQUIRED, A, checks=PASSED, turn_failure=CRASH), Verdict.FAILED),
    (
        "cancelled beats all",
        Observed(REQUIRED, A, violations=OUT, turn_failure=CRASH, cancelled=True),
        Verdict.CANCELLED,
    ),
    (
        "interrupted beats failure",
        Observed(REQUIRED, A, turn_failure=CRASH, interrupted=True),
        Verdict.INTERRUPTED,
    ),
    (
        "missing program",
        Observed(REQUIRED, A, checks=(check(CheckStatus.MISSING),), claim=claim()),
        Verdict.UNVERIFIED,
    ),
    (
        "one passed, one could not run",
        Observed(REQUIRED, A, checks=(*PASSED, check(CheckStatus.NOT_ON_TREE)), claim=claim()),
        Verdict.UNVERIFIED,
    ),
    (
        "refused",
        Observed(REQUIRED, A, checks=(check(CheckStatus.REFUSED),), claim=claim()),
        Verdict.UNVERIFIED,
    ),
    (
        "timed out",
        Observed(REQUIRED, A, checks=(check(CheckStatus.TIMED_OUT),), claim=claim()),
        Verdict.FAILED,
    ),
    ("limit", Observed(REQUIRED, A, checks=(check(CheckStatus.LIMIT),), claim=claim()), Verdict.FAILED),
    (
        "wrong file list",
        Observed(REQUIRED, A, checks=PASSED, claim=claim(files=["other.py"])),
        Verdict.VERIFIED,
    ),
]


@pytest.mark.parametrize(("seen", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_verdict(seen: Observed, expected: Verdict) -> None:
    verdict, reasons = judge(seen)
    assert verdict is expected
    assert reasons


def test_verified_needs_every_condition_at_once() -> None:
    """Over the whole product of inputs, `verified` comes out exactly where the contract says so."""
    claims = [None, *(claim(status) for status in ClaimStatus)]
    checks = [(), *((check(status),) for status in CheckStatus)]
    for intent, changed, violations, failure, said, ran in itertools.product(
        ChangeIntent, ((), A), ((), OUT), (None, CRASH), claims, checks
    ):
        verdict, _ = judge(Observed(intent, changed, violations, ran, said, failure))
        expected = (
            not violations
            and failure is None
            and said is not None
            and said.status is ClaimStatus.PASS
            and bool(ran)
            and all(one.status is CheckStatus.PASSED for one in ran)
            and not (changed and intent is FORBIDDEN)
            and not (not changed and intent is REQUIRED)
        )
        assert (verdict is Verdict.VERIFIED) == expected


def test_wrong_file_list_is_a_discrepancy() -> None:
    seen = Observed(REQUIRED, A, checks=PASSED, claim=claim(files=["other.py"]))
    assert discrepancies(seen) == [
        "changed but not reported: a.py",
        "reported as changed but not changed: other.py",
    ]


def test_false_pass_is_named_as_a_discrepancy() -> None:
    seen = Observed(REQUIRED, A, checks=FAILED, claim=claim(files=["./a.py"]))
    assert discrepancies(seen) == ["claims PASS, but the check fails: pytest"]


def test_pass_that_names_blockers_is_a_discrepancy() -> None:
    said = claim().model_copy(update={"blockers": ["no access to the\ndatabase"]})
    assert discrepancies(Observed(REQUIRED, A, checks=PASSED, claim=said)) == [
        "claims PASS, but names what blocks it: no access to the database"
    ]
