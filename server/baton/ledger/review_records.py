"""What the ledger keeps of reviews. Times are seconds since 1970."""

from __future__ import annotations

from baton.contract.review import Confidence, Disposition, Located, ReviewMode, ReviewState, Severity
from baton.ledger.records import JsonObject, PathText, Record


class ReviewRecord(Record):
    """One review: its plan as it was shown, and how far it is."""

    review_id: str
    parent: str | None = None
    """The review that it rechecks."""
    round: int = 0
    """How many reviews it rechecks, one after the other."""
    workspace: PathText | None = None
    mode: ReviewMode
    goal: str
    state: ReviewState = ReviewState.PLANNED
    plan: JsonObject = {}
    """Everything that a run needs: material, reviewers, what was masked, bounds."""
    approval: str
    """Hash of all that was shown."""
    token: str | None = None
    """Hash of the one-time token; None once it is spent."""
    confirmed_by: str | None = None
    """`person` or `token`."""
    consultation_id: str | None = None
    conclusion: str | None = None
    note: str | None = None
    """One line on how it came to rest."""
    created_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None


class ReviewFindingRecord(Record):
    """One finding of a review, as its source gave it, normalised."""

    review_id: str
    number: int
    """From 1; shown as F1."""
    source: str
    """The reviewer's seat, or `host`."""
    turn: int | None = None
    """The number of the reviewer's answer."""
    carried: str | None = None
    """The finding of the rechecked review that it goes on with."""
    severity: Severity
    title: str
    detail: str | None = None
    path: str | None = None
    line: int | None = None
    confidence: Confidence
    suggestion: str | None = None
    located: Located = Located.NONE
    disposition: Disposition = Disposition.OPEN
    answered: bool = False
    """Whether anybody gave it a disposition."""
    reason: str | None = None

    @property
    def id(self) -> str:
        return f"F{self.number}"


class DispositionRecord(Record):
    """One step in what became of a finding; the last one counts."""

    entry: int = 0
    review_id: str
    number: int
    disposition: Disposition
    reason: str | None = None
    source: str
    """`host`, or `recheck`."""
    at: float = 0.0


class ReviewReadRecord(Record):
    """What was made of one reviewer's answer."""

    review_id: str
    turn: int
    seat: str
    parsed: bool
    detail: str | None = None
    """Why it was not, or what was left out."""
    rechecks: list[JsonObject] = []
    """What it says of earlier findings."""
