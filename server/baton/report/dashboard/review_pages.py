"""The pages on reviews: what reviewers found, what became of it, and how each of them fared."""

from __future__ import annotations

from collections import Counter
from typing import Any

from baton.contract.review import Severity
from baton.engine.house import House
from baton.ledger.review_records import ReviewFindingRecord
from baton.ledger.reviews import serious_open
from baton.report.dashboard.pager import pager
from baton.report.dashboard.query import Query
from baton.report.excerpt import Excerpt, shortened
from baton.review.stored import StoredPlan

REVIEWS, FINDINGS = 40, 100

MAX_TEXT = 20_000
"""Characters shown of one text of a finding."""

_ORDER = [*Severity]

Shown = tuple[str, dict[str, Any]]


def reviews(house: House, query: Query) -> Shown:
    """All of them, the newest first, and the reviewers' scores."""
    total = int(house.ledger.db.read("SELECT count(*) FROM reviews")[0][0])
    shown = pager(query, total, REVIEWS)
    records = house.ledger.reviews(REVIEWS, shown.offset)
    found = {one.review_id: house.ledger.review_findings(one.review_id) for one in records}
    return "dashboard/reviews.html", {
        "reviews": records,
        "counts": {name: _counts(findings) for name, findings in found.items()},
        "open": {name: len(serious_open(findings)) for name, findings in found.items()},
        "scores": house.ledger.scorecard(),
        "pager": shown,
        "live": "reviews",
    }


def review(house: House, query: Query) -> Shown:
    """One of them with a page of its findings, the gravest first. Raises `NotFound`."""
    record = house.ledger.review(query.path["review_id"])
    findings = house.ledger.review_findings(record.review_id)
    ordered = sorted(findings, key=lambda one: (_ORDER.index(one.severity), one.number))
    shown = pager(query, len(ordered), FINDINGS)
    reads = house.ledger.review_reads(record.review_id)
    parsed = {one.seat for one in reads if one.parsed}
    plan = StoredPlan.of(record)
    return "dashboard/review.html", {
        "record": record,
        "plan": plan,
        "counts": _counts(findings),
        "open": len(serious_open(findings)),
        "findings": [
            (one, _text(one.detail), _text(one.suggestion), _text(one.reason))
            for one in ordered[shown.offset : shown.offset + FINDINGS]
        ],
        "history": house.ledger.dispositions(record.review_id)[-FINDINGS:],
        "unread": [one for one in reads if one.seat not in parsed],
        "rechecks": house.ledger.reviews(20, parent=record.review_id),
        "pager": shown,
        "live": f"review/{record.review_id}",
    }


def _counts(findings: list[ReviewFindingRecord]) -> dict[str, int]:
    """How many there are of each severity, the gravest first; none is left out."""
    found = Counter(one.severity for one in findings)
    return {severity.value: found[severity] for severity in _ORDER if found[severity]}


def _text(text: str | None) -> Excerpt | None:
    return None if text is None else shortened(text, MAX_TEXT)
