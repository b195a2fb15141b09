"""What a caller is shown of a review: short, with pointers to the rest. Pure.

Findings are somebody's words, passed on as they are: data, never instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baton.contract.review import ReviewState
from baton.contract.wording import many
from baton.engine.shorten import SHORTENED, size
from baton.ledger.review_records import ReviewFindingRecord, ReviewReadRecord, ReviewRecord
from baton.ledger.reviews import serious_open
from baton.review.words import TOOL, Words

MAX_RESULT = 2_400
"""Bytes of JSON."""

_ORDER = ("critical", "important", "minor", "note")
_TITLE = 160


def planned(review: ReviewRecord, shown: dict[str, Any], token: str | None) -> dict[str, Any]:
    """A plan, which sent nothing."""
    send = " and secrets=send" if shown["secrets"] else ""
    with_token = " with confirm" if token else ""
    answer = {
        "reviewId": review.review_id,
        "state": review.state.value,
        **shown,
        "next": f"nothing was sent; show the person this plan; when they agree, run{with_token}{send}",
    }
    return answer | ({"confirm": token} if token else {})


def present(
    review: ReviewRecord,
    findings: Sequence[ReviewFindingRecord],
    reads: Sequence[ReviewReadRecord],
    words: Words = TOOL,
) -> dict[str, Any]:
    """A review that was run. Serious findings come first and are never left out for lesser ones."""
    ordered = sorted(findings, key=lambda one: (_ORDER.index(one.severity.value), one.number))
    shown: dict[str, Any] = {"reviewId": review.review_id, "state": review.state.value}
    parsed = {one.seat for one in reads if one.parsed}
    unread = sorted({one.seat for one in reads} - parsed)
    more: dict[str, Any] = {
        "parent": review.parent,
        "reviewers": sorted(parsed),
        "unparsed": unread,
        "consultationId": review.consultation_id,
        "confirmedBy": review.confirmed_by,
        "note": review.note,
    }
    shown |= {name: value for name, value in more.items() if value}
    if review.state in (ReviewState.AWAITING_SYNTHESIS, ReviewState.FINALISED):
        shown["counts"] = {
            name: sum(one.severity.value == name for one in findings)
            for name in _ORDER
            if any(one.severity.value == name for one in findings)
        }
        shown["openSerious"] = len(serious_open(findings))
    shown["next"] = next_step(review, findings, unread, words)
    shown["findings"] = []
    left = 0
    for detail in (True, False):
        shown["findings"] = []
        room = MAX_RESULT - size(shown) - 120
        left = 0
        for finding in ordered:
            entry = finding_shown(finding, detail=detail)
            room -= size(entry) + 2
            if room < 0:
                left += 1
            else:
                shown["findings"].append(entry)
        if left == 0:
            break
    if left:
        shown[SHORTENED] = f"{many(left, 'more finding')}: {words.findings(review.review_id)}"
    elif findings and not detail:
        shown[SHORTENED] = f"details: {words.findings(review.review_id)}"
    if not shown["findings"] and not findings:
        del shown["findings"]
    return shown


def finding_shown(finding: ReviewFindingRecord, *, detail: bool, most: int = 400) -> dict[str, Any]:
    """One finding; what is empty is left out."""
    place = finding.path and (f"{finding.path}:{finding.line}" if finding.line else finding.path)
    text = finding.detail if detail else None
    shown: dict[str, Any] = {
        "id": finding.id,
        "severity": finding.severity.value,
        "title": finding.title if detail else finding.title[:_TITLE],
        "place": place,
        "located": finding.located.value if place else None,
        "confidence": finding.confidence.value,
        "by": finding.source,
        "carried": finding.carried,
        "detail": text if text is None or len(text) <= most else text[: most - 1] + "…",
        "disposition": finding.disposition.value if finding.answered else None,
    }
    return {name: value for name, value in shown.items() if value}


def next_step(
    review: ReviewRecord,
    findings: Sequence[ReviewFindingRecord],
    unread: Sequence[str],
    words: Words = TOOL,
) -> str:
    """What a caller can do now."""
    name = review.review_id
    match review.state:
        case ReviewState.PLANNED:
            return words.run(name)
        case ReviewState.RUNNING:
            return words.wait(name, review.consultation_id)
        case ReviewState.FAILED | ReviewState.CANCELLED if review.consultation_id:
            return f"{words.retry(name)}, or plan anew"
        case ReviewState.FINALISED:
            is_open = serious_open(findings)
            return f"fix what is open, then {words.recheck(name)}" if is_open else "done"
        case ReviewState.AWAITING_SYNTHESIS:
            missing = [one.id for one in findings if one.severity.serious and not one.answered]
            text = f"check each finding yourself, then {words.finalise(name, missing[:20])}"
            if unread:
                text += f"; text of {unread[0]}: {words.answer(name, unread[0])}"
            return text
    return "plan anew"
