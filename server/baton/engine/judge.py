"""The verdict: a pure function of what was observed; the first rule that matches wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from baton.contract.claim import Claim, ClaimStatus
from baton.contract.evidence import CheckResult, CheckStatus, TurnFailure, Violation
from baton.contract.findings import CheckedFinding
from baton.contract.states import ChangeIntent, Verdict

_FAILING = (CheckStatus.FAILED, CheckStatus.TIMED_OUT, CheckStatus.LIMIT)


@dataclass(frozen=True)
class Observed:
    """Everything a verdict rests on."""

    intent: ChangeIntent
    changed: tuple[str, ...]
    """Paths that differ between base and captured tree, as shown."""
    violations: tuple[Violation, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    claim: Claim | None = None
    """None when the final report was missing or malformed."""
    turn_failure: TurnFailure | None = None
    cancelled: bool = False
    interrupted: bool = False
    findings: tuple[CheckedFinding, ...] | None = None
    """What an exploration cites; None for any other task."""


def judge(seen: Observed) -> tuple[Verdict, list[str]]:
    """The verdict of one attempt with its reasons, most important first.

    A failing check is one that ran on the tree and did not succeed. A check that could not run (missing
    program, not on the tree, refused) proves nothing, so with one of those the result is `unverified` even
    when others passed.
    """
    if seen.cancelled:
        return Verdict.CANCELLED, ["cancelled before it was finished"]
    if seen.interrupted:
        return Verdict.INTERRUPTED, ["interrupted before it was finished; it can be resumed"]
    broken = _hard_failures(seen)
    if broken:
        return Verdict.FAILED, broken
    if seen.claim is not None and seen.claim.status is ClaimStatus.BLOCKED:
        return Verdict.BLOCKED, ["the worker reports that it is blocked", *seen.claim.blockers]
    if seen.claim is not None and seen.claim.status is ClaimStatus.FAILED:
        return Verdict.FAILED, ["the worker reports failure", *seen.claim.blockers]
    if not seen.changed and seen.intent is ChangeIntent.REQUIRED:
        return Verdict.NO_CHANGE, ["a change is required and the tree has none"]
    failing = [check for check in seen.checks if check.status in _FAILING]
    if failing:
        return Verdict.FAILED, [_check_reason(check) for check in failing]
    doubts = _doubts(seen)
    if doubts:
        return Verdict.UNVERIFIED, doubts
    if seen.findings is not None:
        return Verdict.VERIFIED, [_cited_reason(len(seen.findings))]
    return Verdict.VERIFIED, [_passed_reason(len(seen.checks))]


def discrepancies(seen: Observed) -> list[str]:
    """Where the claim and the observation differ; never a verdict by themselves."""
    if seen.claim is None:
        return []
    found = []
    claimed, actual = {_plain(path) for path in seen.claim.files_changed}, set(seen.changed)
    unnamed, untrue = sorted(actual - claimed), sorted(claimed - actual)
    if unnamed:
        found.append("changed but not reported: " + _listed(unnamed))
    if untrue:
        found.append("reported as changed but not changed: " + _listed(untrue))
    if seen.claim.status is ClaimStatus.PASS:
        for check in seen.checks:
            if check.status in _FAILING:
                found.append(f"claims PASS, but the check fails: {check.command}")
        if not actual and seen.intent is ChangeIntent.REQUIRED:
            found.append("claims PASS, but nothing changed")
        if seen.claim.blockers:
            found.append(
                "claims PASS, but names what blocks it: "
                + _listed([" ".join(text.split()) for text in seen.claim.blockers], 3)
            )
    return found


def _hard_failures(seen: Observed) -> list[str]:
    reasons = []
    if seen.turn_failure is not None:
        reasons.append(f"the turn failed ({seen.turn_failure.failure_class}): {seen.turn_failure.message}")
    reasons += [f"out of scope: {violation.path} ({violation.rule})" for violation in seen.violations]
    if seen.changed and seen.intent is ChangeIntent.FORBIDDEN:
        reasons.append("no change is allowed, but the tree changed: " + _listed(list(seen.changed)))
    return reasons


def _doubts(seen: Observed) -> list[str]:
    doubts = []
    if seen.claim is None:
        doubts.append("the final report is missing or malformed")
    if seen.findings is not None:
        doubts += _uncited(seen.findings)
    elif not seen.checks:
        doubts.append("no check was asked for")
    doubts += [_check_reason(check) for check in seen.checks if check.status is not CheckStatus.PASSED]
    return doubts


def _uncited(findings: Sequence[CheckedFinding]) -> list[str]:
    if not findings:
        return ["no finding cites a file"]
    false = [finding for finding in findings if not finding.holds]
    if not false:
        return []
    shown = _listed([f"{finding.file}:{finding.line} ({finding.detail})" for finding in false], 3)
    return [f"{len(false)} of {len(findings)} citations do not hold: {shown}"]


def _cited_reason(count: int) -> str:
    return "its citation is in the file" if count == 1 else f"all {count} citations are in the files"


def _check_reason(check: CheckResult) -> str:
    if check.status is CheckStatus.FAILED and check.exit_code is not None:
        return f"check failed with exit status {check.exit_code}: {check.command}"
    words = {
        CheckStatus.FAILED: "check failed",
        CheckStatus.TIMED_OUT: "check timed out",
        CheckStatus.LIMIT: "check went over a limit",
        CheckStatus.MISSING: "check could not run, its program is missing",
        CheckStatus.NOT_ON_TREE: "check did not run on the captured tree",
        CheckStatus.REFUSED: "check was not run",
    }
    text = f"{words.get(check.status, check.status.value)}: {check.command}"
    return f"{text} ({check.detail})" if check.detail else text


def _passed_reason(count: int) -> str:
    return "its check passed on the captured tree" if count == 1 else f"all {count} checks passed on the tree"


def _plain(path: str) -> str:
    return path.removeprefix("./").rstrip("/")


def _listed(paths: list[str], most: int = 5) -> str:
    shown = ", ".join(paths[:most])
    return shown if len(paths) <= most else f"{shown} and {len(paths) - most} more"
