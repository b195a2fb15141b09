"""Makes of the answers that are in what they are worth: findings, a repair, or a failed review.

Everything here follows from the ledger alone and may be done again: whoever looks at a review goes on where
another process was killed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from baton.consult.content import Content
from baton.consult.plan import Plan, PlannedTurn, rules_for
from baton.consult.request import TurnRequest
from baton.consult.service import ConsultService
from baton.contract.consult import TurnState
from baton.contract.errors import BatonError, NotFound, SpendLimit, WrongState
from baton.contract.review import Disposition, RecheckStatus, ReviewState
from baton.contract.wording import many
from baton.ledger.consult_records import ConsultTurnRecord
from baton.ledger.review_records import (
    DispositionRecord,
    ReviewFindingRecord,
    ReviewReadRecord,
    ReviewRecord,
)
from baton.policy.load import load_policy
from baton.review.asking import repair
from baton.review.findings import Parsed, parse_findings
from baton.review.places import locate_finding
from baton.review.plan import finding_record
from baton.review.stored import StoredPlan

RECHECK = "recheck"
"""Who disposed of a finding that all reviewers of a recheck called gone."""

REPAIRS = 1
"""So often a reviewer is asked for its findings in a form that can be read."""


def seat_of(turn: ConsultTurnRecord) -> str:
    return TurnRequest.model_validate(turn.request).seat


def settle(consulting: ConsultService, review: ReviewRecord) -> ReviewRecord:
    """Bring a running review on as far as its answers allow; the review as it is then."""
    house = consulting.house
    if review.state is not ReviewState.RUNNING or review.consultation_id is None:
        return review
    try:
        consultation = house.ledger.consultation(review.consultation_id)
    except NotFound:
        why = "its consultation was deleted before the answers were read"
        return house.ledger.change_review(
            review.review_id, state=ReviewState.FAILED, consultation_id=None, note=why
        )
    if not consultation.state.at_rest:
        return review
    turns = house.ledger.consult_turns(review.consultation_id)
    content = Content(house, consultation)
    for turn in turns:
        _read(consulting, review, content, turn)
    if consultation.cancel_asked is None and _repair(consulting, review, content, turns):
        return house.ledger.review(review.review_id)
    return _close(consulting, review, turns, cancelled=consultation.cancel_asked is not None)


def ask_more(
    consulting: ConsultService,
    review: ReviewRecord,
    seen: Sequence[ConsultTurnRecord],
    planned: Sequence[PlannedTurn],
    states: Sequence[ReviewState] = (ReviewState.RUNNING,),
) -> None:
    """Another round of a review in one of the `states`.

    Raises `WrongState` when somebody else began one or finalised it, `SpendLimit` at a ceiling.
    """
    house = consulting.house
    folder = _folder(review)
    rules = rules_for(house, folder)
    most = load_policy(house.codex_home, folder).review.max_turns
    if len(seen) + len(planned) > most:
        raise SpendLimit(
            f"{len(seen)} of {most} questions of this review are used (review.max_turns); nothing was sent"
        )
    consultation = house.ledger.consultation(str(review.consultation_id))

    def also() -> None:
        if len(house.ledger.consult_turns(consultation.consultation_id)) != len(seen):
            raise WrongState(f"review {review.review_id} went on meanwhile; look at it again")
        running = {"state": ReviewState.RUNNING, "note": None, "ended_at": None}
        house.ledger.change_review(review.review_id, states, **running)

    consulting.begin(Plan(consultation, tuple(planned), rules, True, {}), also)


def _folder(review: ReviewRecord) -> Path | None:
    """The folder whose policy counts, while it is there."""
    path = None if review.workspace is None else Path(review.workspace)
    return path if path is not None and path.is_dir() else None


def _read(
    consulting: ConsultService, review: ReviewRecord, content: Content, turn: ConsultTurnRecord
) -> None:
    """Record what a turn's answer holds, once."""
    answer = content.answer(turn)
    if answer is None:
        return
    parsed = parse_findings(answer)
    plan = StoredPlan.of(review)
    read = ReviewReadRecord(
        review_id=review.review_id,
        turn=turn.number,
        seat=seat_of(turn),
        parsed=parsed is not None,
        detail=_detail(parsed),
        rechecks=[one.wire() for one in parsed.rechecks] if parsed else [],
    )
    seat = seat_of(turn)
    known = any(
        one.seat == seat and one.parsed and one.turn != turn.number
        for one in consulting.house.ledger.review_reads(review.review_id)
    )
    findings = []
    # A seat that was asked twice counts once.
    if parsed is not None and not known:
        for found in parsed.findings:
            placed = locate_finding(found, plan.places)
            findings.append(finding_record(review.review_id, seat, turn.number, placed))
    consulting.house.ledger.record_read(read, findings)


def _detail(parsed: Parsed | None) -> str | None:
    if parsed is None:
        return "no list of findings is in it; its text is kept"
    return (
        f"{many(parsed.left_out, 'entry is no finding', 'entries are no findings')}; its text is kept"
        if parsed.left_out
        else None
    )


def _repair(
    consulting: ConsultService, review: ReviewRecord, content: Content, turns: Sequence[ConsultTurnRecord]
) -> bool:
    """Whether a repair was begun."""
    reads = consulting.house.ledger.review_reads(review.review_id)
    parsed = {one.seat for one in reads if one.parsed}
    unread: dict[str, list[ConsultTurnRecord]] = {}
    failed_turns = {one.turn for one in reads if not one.parsed}
    for turn in turns:
        if turn.number in failed_turns and seat_of(turn) not in parsed:
            unread.setdefault(seat_of(turn), []).append(turn)
    rules = rules_for(consulting.house, _folder(review))
    rechecks = bool(StoredPlan.of(review).earlier)
    planned = [
        repair(content, answers[-1], rules, rechecks=rechecks)
        for seat, answers in unread.items()
        if len(answers) <= REPAIRS
        and answers[-1] is [turn for turn in turns if seat_of(turn) == seat][-1]
        and answers[-1].agent in rules.agents
    ]
    if not planned:
        return False
    try:
        ask_more(consulting, review, turns, planned)
    except WrongState:
        # Somebody else who waits for it was first.
        return True
    except BatonError:
        # A ceiling, or a policy that changed: the others count, and the text is kept.
        return False
    return True


def _close(
    consulting: ConsultService, review: ReviewRecord, turns: Sequence[ConsultTurnRecord], *, cancelled: bool
) -> ReviewRecord:
    with consulting.house.ledger.transaction():
        # Another session that looked at it may have closed it, and its person answered the findings.
        now = consulting.house.ledger.review(review.review_id)
        if now.state is not ReviewState.RUNNING or now.consultation_id is None:
            return now
        return _closed(consulting, now, turns, cancelled=cancelled)


def _closed(
    consulting: ConsultService, review: ReviewRecord, turns: Sequence[ConsultTurnRecord], *, cancelled: bool
) -> ReviewRecord:
    ledger = consulting.house.ledger
    if len(ledger.consult_turns(str(review.consultation_id))) != len(turns):
        # Asked once more since.
        return review
    reads = ledger.review_reads(review.review_id)
    if reads:
        _carry(consulting, review, reads)
        state, note = ReviewState.AWAITING_SYNTHESIS, None
        silent = sorted({seat_of(turn) for turn in turns} - {one.seat for one in reads if one.parsed})
        if silent:
            note = f"without findings of {', '.join(silent)}"
    elif cancelled or all(turn.state is TurnState.CANCELLED for turn in turns):
        state, note = ReviewState.CANCELLED, "cancelled before anybody answered"
    else:
        reasons = {seat_of(turn): turn.detail or turn.state.value for turn in turns}
        state, note = ReviewState.FAILED, "; ".join(f"{seat}: {why}" for seat, why in reasons.items())
    return ledger.change_review(review.review_id, state=state, note=note)


def _carry(consulting: ConsultService, review: ReviewRecord, reads: Sequence[ReviewReadRecord]) -> None:
    """What everybody who was asked again calls gone is fixed; the rest stays to be answered."""
    ledger = consulting.house.ledger
    said: dict[str, dict[str, tuple[str, str | None]]] = {}
    for read in reads:
        for entry in read.rechecks:
            note = entry.get("note")
            status = (str(entry["status"]), note if isinstance(note, str) else None)
            said.setdefault(str(entry["finding"]), {})[read.seat] = status
    decided = []
    parsed = {one.seat for one in reads if one.parsed}
    for finding in ledger.review_findings(review.review_id):
        if finding.carried is None or finding.answered:
            continue
        votes = said.get(finding.carried, {})
        gone = [seat for seat, (status, _) in votes.items() if status == RecheckStatus.GONE]
        if parsed and set(gone) >= parsed:
            decided.append(_gone(finding, gone, [note for _, note in votes.values() if note]))
    ledger.decide(review.review_id, decided)


def _gone(finding: ReviewFindingRecord, seats: Sequence[str], notes: Sequence[str]) -> DispositionRecord:
    reason = f"gone, says {', '.join(sorted(seats))}" + (f": {notes[0]}" if notes else "")
    return DispositionRecord(
        review_id=finding.review_id,
        number=finding.number,
        disposition=Disposition.FIXED,
        reason=reason[:2000],
        source=RECHECK,
    )
