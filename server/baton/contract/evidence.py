"""What Baton observed of an attempt, and how the result is worded for the supervisor."""

from __future__ import annotations

from enum import StrEnum

from baton.contract.base import Wire
from baton.contract.claim import Claim
from baton.contract.findings import CheckedFinding
from baton.contract.states import Enforcement, FailureClass, Integration, Verdict


class CheckStatus(StrEnum):
    """How a check ended. Only `passed` counts as passing."""

    PASSED = "passed"
    FAILED = "failed"
    MISSING = "missing"
    """The program is not there: says nothing about the tree."""
    TIMED_OUT = "timed_out"
    LIMIT = "limit"
    """Ended for memory or output beyond the limit."""
    NOT_ON_TREE = "not_on_tree"
    """It ran on the person's files instead of the captured tree: proves nothing."""
    REFUSED = "refused"
    """Not run: the command policy or the missing sandbox forbids it."""


class CheckResult(Wire):
    """One verification command, run by Baton on one tree."""

    command: str
    argv: list[str]
    tree: str
    status: CheckStatus
    exit_code: int | None = None
    seconds: float
    sandboxed: bool
    detail: str | None = None
    """One line on why it did not pass."""
    tail: str = ""
    """The failing part or the end of its output, short."""
    output: str | None = None
    """Artifact id (sha256) of the whole output."""
    output_bytes: int = 0


class ChangeShown(Wire):
    """One changed path as shown."""

    path: str
    kind: str
    old_path: str | None = None
    mode: str | None = None
    """`old → new` when the mode changed."""


class PatternReading(Wire):
    """How one scope pattern was read, and how it holds."""

    pattern: str
    role: str
    """allowed, forbidden or hidden."""
    reading: str
    enforcement: Enforcement


class Violation(Wire):
    """One thing that is out of scope in the captured tree, or an attempt that was stopped."""

    path: str
    rule: str


class ScopeEvidence(Wire):
    """How the scope was held and what the captured tree says."""

    enforcement: Enforcement
    why_detected: str | None = None
    patterns: list[PatternReading] = []
    violations: list[Violation] = []


class Route(Wire):
    """Model and effort: asked for, effective as Codex reports, and what a server claimed, where known."""

    role: str | None = None
    tier: str | None = None
    asked_model: str
    asked_effort: str | None = None
    model: str | None = None
    effort: str | None = None
    provider: str | None = None
    server_claimed: str | None = None
    deviates: bool = False


class Usage(Wire):
    """Tokens as Codex reports them. Unknown is None, never zero."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_output_tokens: int | None = None
    total_tokens: int | None = None


class TurnFailure(Wire):
    """Why a turn ended without completing."""

    failure_class: FailureClass
    message: str
    retry_after_seconds: float | None = None


class Evidence(Wire):
    """Everything observed of one attempt."""

    base: str
    tree: str | None = None
    commit: str | None = None
    changes: list[ChangeShown] = []
    ignored: list[str] = []
    nested: list[str] = []
    unsupported: list[str] = []
    scope: ScopeEvidence
    checks: list[CheckResult] = []
    discrepancies: list[str] = []
    """Where claim and observation differ."""
    notices: list[str] = []
    """Recoverable notices of Codex, denials and other things worth knowing."""
    turn_failure: TurnFailure | None = None
    aside: str | None = None
    findings: list[CheckedFinding] | None = None
    """What an exploration found, each citation checked; None for a task that is none."""


class Decision(Wire):
    """What follows an attempt that did not succeed: the rung of the ladder that was taken, and why."""

    trouble: str
    """The class of what went wrong."""
    action: str
    """`retry`, `wait` or `stop`."""
    why: str
    effort: str | None = None
    tier: str | None = None
    """What the next attempt runs with, when that is something else."""
    model: str | None = None
    wait_seconds: float | None = None


class AttemptResult(Wire):
    """One attempt, complete, as the ledger keeps it."""

    attempt: int
    thread_id: str | None = None
    verdict: Verdict
    reasons: list[str]
    claim: Claim | None = None
    malformed_report: str | None = None
    evidence: Evidence
    route: Route | None = None
    usage: Usage = Usage()
    seconds: float = 0.0
    decision: Decision | None = None
    """What was decided about its trouble; None when there was none."""


class TaskOutcome(Wire):
    """Where a task's result went."""

    integration: Integration | None = None
    detail: str | None = None
