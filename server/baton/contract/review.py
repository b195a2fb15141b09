"""What crosses the boundary when work is reviewed: the call, findings, and what became of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from baton.contract.base import Wire
from baton.contract.consult import AgentId
from baton.contract.shapes import strict_object
from baton.contract.task import Text, Word

ReviewId = Annotated[str, Field(min_length=1, max_length=40)]
FindingId = Annotated[str, Field(pattern=r"^F[1-9]\d{0,4}$")]


class ReviewAction(StrEnum):
    """What `review` does."""

    PLAN = "plan"
    RUN = "run"
    FINALISE = "finalise"
    RETRY = "retry"
    RECHECK = "recheck"
    STATUS = "status"


class ReviewMode(StrEnum):
    """How thorough a review is."""

    STANDARD = "standard"
    """One reviewer."""
    DEEP = "deep"
    """One to five, and the host's own findings recorded first."""


class Severity(StrEnum):
    """How bad a finding is."""

    CRITICAL = "critical"
    IMPORTANT = "important"
    MINOR = "minor"
    NOTE = "note"

    @property
    def serious(self) -> bool:
        """Whether it must be answered."""
        return self in (Severity.CRITICAL, Severity.IMPORTANT)


class Confidence(StrEnum):
    """How sure whoever found it is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Disposition(StrEnum):
    """What became of a finding."""

    OPEN = "open"
    FIXED = "fixed"
    REJECTED = "rejected"
    ACCEPTED_RISK = "accepted_risk"


class Located(StrEnum):
    """Whether the place of a finding was found in the material."""

    CHANGED = "changed"
    """On a line that the diff adds or changes."""
    NEAR = "near"
    """In a part of a file that the diff shows."""
    FILE = "file"
    """In a file of the material, elsewhere or without a line."""
    OUTSIDE = "outside"
    """In no file of the material."""
    NONE = "none"
    """It names no place, or the material has none."""


class ReviewState(StrEnum):
    """Where a review is. Each state has a way on."""

    PLANNED = "planned"
    RUNNING = "running"
    AWAITING_SYNTHESIS = "awaiting_synthesis"
    """Answers are in; every serious finding waits for a disposition."""
    FINALISED = "finalised"
    """It can be finalised again, with a history, and rechecked."""
    FAILED = "failed"
    """No reviewer answered; retry."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """Planned and not run within a day."""


class RecheckStatus(StrEnum):
    """What a reviewer says of an earlier finding."""

    STILL = "still"
    GONE = "gone"
    UNCLEAR = "unclear"


class GivenFinding(Wire):
    """A finding of the session's own."""

    severity: Severity
    title: Word
    detail: Text | None = None
    path: Word | None = None
    line: Annotated[int, Field(ge=1, lt=10**9)] | None = None
    confidence: Confidence = Confidence.MEDIUM


class Decision(Wire):
    """What becomes of one finding."""

    finding: FindingId
    disposition: Disposition
    reason: Text | None = None
    """Needed for rejected and accepted_risk."""


class Secrets(StrEnum):
    """What to do with code that looks as if it held credentials."""

    REFUSE = "refuse"
    SEND = "send"


class ReviewPart(StrEnum):
    """What `status` reads."""

    SUMMARY = "summary"
    FINDINGS = "findings"
    ANSWER = "answer"
    HISTORY = "history"
    MATERIAL = "material"


class ReviewCall(Wire):
    """Arguments of `review`; each action takes some of them."""

    action: ReviewAction
    id: ReviewId | None = None
    """For all but plan."""
    goal: Text | None = None
    """What to judge."""
    mode: ReviewMode = ReviewMode.STANDARD
    diff_ref: Word | None = None
    """A..B, A...B (from the merge base) or a commit: committed changes only."""
    repository: Word | None = None
    """Absolute path; default is the workspace."""
    paths: Annotated[list[Word], Field(max_length=100)] = []
    """Files; with diffRef they limit it."""
    context: Text | None = None
    """Text as material, or beside it."""
    run_id: Word | None = None
    """What this Baton run changed."""
    reviewers: Annotated[list[AgentId], Field(max_length=5)] = []
    """Default: the policy's, or the best."""
    persona: Word | None = None
    own_findings: Annotated[list[GivenFinding], Field(max_length=100)] | None = None
    """plan deep: yours, before you see theirs ([] for none); reviewers never see them. finalise: more."""
    secrets: Secrets = Secrets.REFUSE
    """send: the person agreed to send code with what the plan calls secrets."""
    confirm: Word | None = None
    """run: the plan's token, once the person agreed."""
    dispositions: Annotated[list[Decision], Field(max_length=500)] = []
    conclusion: Text | None = None
    what: ReviewPart = ReviewPart.SUMMARY
    reviewer: AgentId | None = None
    """retry: this one; status: whose answer."""
    offset: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1, le=30_000)] = 6_000
    workspace: Word | None = None
    wait_seconds: Annotated[int, Field(ge=0, le=280)] = 240


class Finding(Wire):
    """One finding, normalised."""

    severity: Severity
    title: str
    detail: str | None = None
    path: str | None = None
    line: int | None = None
    confidence: Confidence = Confidence.MEDIUM
    suggestion: str | None = None
    located: Located = Located.NONE


class Recheck(Wire):
    """What a reviewer says of a finding of the review before."""

    finding: str
    status: RecheckStatus
    note: str | None = None


def answer_schema(earlier: bool) -> dict[str, Any]:
    """The JSON Schema of a reviewer's findings: strict. `earlier` adds the ones to confirm or drop."""
    text: dict[str, Any] = {"type": "string"}
    maybe: dict[str, Any] = {"type": ["string", "null"]}

    finding = strict_object(
        {
            "severity": {"type": "string", "enum": [one.value for one in Severity]},
            "title": text,
            "detail": text,
            "path": maybe,
            "line": {"type": ["integer", "null"]},
            "confidence": {"type": "string", "enum": [one.value for one in Confidence]},
            "suggestion": maybe,
        }
    )
    properties: dict[str, Any] = {"findings": {"type": "array", "items": finding}}
    if earlier:
        status = {"type": "string", "enum": [one.value for one in RecheckStatus]}
        entry = strict_object({"finding": text, "status": status, "note": maybe})
        properties["earlier"] = {"type": "array", "items": entry}
    return strict_object(properties)
