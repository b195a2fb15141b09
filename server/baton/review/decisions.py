"""What a caller decides of each finding, checked and without credentials. Pure."""

from __future__ import annotations

from baton.consult.outgoing import prose
from baton.contract.errors import InvalidInput
from baton.contract.review import Disposition, ReviewCall
from baton.ledger.review_records import DispositionRecord, ReviewRecord


def decisions_of(
    review: ReviewRecord, call: ReviewCall, known: set[str]
) -> tuple[list[DispositionRecord], list[str]]:
    """The dispositions as they may be written down, and what was masked in their reasons."""
    needs_reason = (Disposition.REJECTED, Disposition.ACCEPTED_RISK)
    seen: set[str] = set()
    for one in call.dispositions:
        if one.finding not in known:
            raise InvalidInput(f"dispositions: there is no finding {one.finding}; there are {len(known)}")
        if one.finding in seen:
            raise InvalidInput(f"dispositions: {one.finding} is answered twice")
        seen.add(one.finding)
        if one.disposition in needs_reason and not (one.reason or "").strip():
            raise InvalidInput(f"dispositions: {one.finding} {one.disposition.value} needs a reason")
    decisions, masked = [], list[str]()
    for one in call.dispositions:
        reason, what = prose(one.reason or "")
        masked += what
        decisions.append(
            DispositionRecord(
                review_id=review.review_id,
                number=int(one.finding[1:]),
                disposition=one.disposition,
                reason=reason or None,
                source="host",
            )
        )
    return decisions, masked
