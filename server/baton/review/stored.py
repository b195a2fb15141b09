"""What a plan needs to be run later, as the ledger keeps it with the review."""

from __future__ import annotations

from typing import Any

from baton.contract.base import Wire
from baton.contract.consult import Material
from baton.ledger.review_records import ReviewFindingRecord, ReviewRecord
from baton.review.asking import Reviewer
from baton.review.material import Source


class StoredReviewer(Wire):
    """One agent and its seat."""

    agent: str
    seat: str
    why: str


class StoredPlan(Wire):
    """A plan without its texts: those are read again, and must be the same."""

    source: dict[str, Any]
    manifest: list[Material]
    places: dict[str, dict[str, list[list[int]]]]
    reviewers: list[StoredReviewer]
    persona: str | None = None
    secrets: list[str] = []
    """Where the material holds what looks like credentials."""
    earlier: list[dict[str, Any]] = []

    @classmethod
    def of(cls, review: ReviewRecord) -> StoredPlan:
        return cls.model_validate(review.plan)

    @property
    def wanted(self) -> Source:
        return Source.of(self.source)

    @property
    def seats(self) -> list[Reviewer]:
        return [Reviewer(one.agent, one.seat, one.why) for one in self.reviewers]

    @property
    def earlier_findings(self) -> list[ReviewFindingRecord]:
        return [ReviewFindingRecord.model_validate(one) for one in self.earlier]
