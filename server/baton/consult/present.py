"""What a caller is shown of a consultation: short, with pointers to the rest. Pure.

Unknown is null, never zero. Answers are somebody's words, passed on as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baton.contract.consult import Answer, ConsultationState, Material, TurnState
from baton.engine.shorten import SHORTENED, fit, size
from baton.ledger.consult_records import ConsultationRecord, ConsultTurnRecord

MAX_RESULT = 1_900
"""Bytes of JSON; the line of text comes on top."""

FULL_TURNS = 3
"""With more turns than these, each is shown by its answer alone."""

Answered = tuple[ConsultTurnRecord, Answer | None]


def present(consultation: ConsultationRecord, turns: Sequence[Answered]) -> dict[str, Any]:
    """A consultation with the given turns, usually those of its last round."""
    lean = len(turns) > FULL_TURNS
    answers = [turn_shown(turn, answer, lean=lean) for turn, answer in turns]
    shown: dict[str, Any] = {
        "consultationId": consultation.consultation_id,
        "state": consultation.state.value,
        "answers": answers,
        "next": next_step(consultation, turns),
    }
    if size(shown) <= MAX_RESULT:
        return shown
    shown |= {"answers": [], SHORTENED: "long parts are cut; records read has all"}
    room = MAX_RESULT - size(shown)
    # Every agent has its share; what a short answer leaves is for the ones after it.
    for place, answer in enumerate(sorted(answers, key=size)):
        share = room // (len(answers) - place) - len(", ")
        cut = fit(answer, share)
        cut.pop(SHORTENED, None)
        room -= size(cut) + len(", ")
        shown["answers"].append(cut)
    shown["answers"].sort(key=lambda answer: answer["turn"])
    return shown


def turn_shown(turn: ConsultTurnRecord, answer: Answer | None, *, lean: bool = False) -> dict[str, Any]:
    """One turn. What is empty is left out; cost and tokens are always there, null when unknown."""
    shown: dict[str, Any] = {
        "turn": turn.number,
        "agent": turn.agent,
        "state": turn.state.value,
        "answer": answer.text if answer else None,
        "costUsd": dollars(turn.cost),
    }
    more: dict[str, Any] = {
        "side": turn.side.value if turn.side else None,
        "failure": turn.failure.value if turn.failure else None,
        "detail": turn.detail,
        "requiredAction": turn.required_action,
        "retryAfterSeconds": turn.retry_after,
    }
    if not lean:
        more |= {
            "structured": answer.structured if answer else None,
            "assumptions": answer.assumptions if answer else None,
            "uncertainties": answer.uncertainties if answer else None,
            "followUps": answer.follow_ups if answer else None,
            "sources": [source.wire() for source in answer.sources] if answer else None,
            "asAsked": None if answer is None or answer.as_asked else False,
            "notices": turn.notices,
            "effort": turn.asked_effort,
            "why": turn.why,
            "sees": turn.sees,
            "seconds": _seconds(turn),
        }
        shown["model"] = turn.model or turn.asked_model
        shown["attested"] = turn.attested
        shown["usage"] = turn.usage.wire() if turn.usage is not None else None
    return shown | {name: value for name, value in more.items() if value not in (None, [], "")}


def next_step(consultation: ConsultationRecord, turns: Sequence[Answered]) -> str:
    """What a caller can do now."""
    name = consultation.consultation_id
    if consultation.state is ConsultationState.WORKING:
        return f"records wait {name}"
    actions = [turn.required_action for turn, _ in turns if turn.required_action]
    if actions:
        return f"the person runs: {actions[0]}; then consult again"
    if any(turn.state is TurnState.ANSWERED for turn, _ in turns):
        return f"weigh it yourself; whole: records read {name} what=answer; go on: consult followUp={name}"
    return f"consult again, or another agent; output: records read {name} what=errors"


def whole_answer(turn: ConsultTurnRecord, answer: Answer) -> str:
    """All of an answer as text."""
    parts = [f"{turn.agent} ({turn.model or turn.asked_model or 'model unknown'}):\n{answer.text}"]
    for title, lines in (
        ("Assumptions", answer.assumptions),
        ("Uncertainties", answer.uncertainties),
        ("Follow-ups", answer.follow_ups),
        ("Sources", [" ".join(filter(None, (one.title, one.location))) for one in answer.sources]),
    ):
        if lines:
            parts.append("\n".join([f"{title}:", *(f"- {line}" for line in lines)]))
    return "\n\n".join(parts) + "\n"


def listed(consultation: ConsultationRecord, turns: Sequence[ConsultTurnRecord]) -> dict[str, Any]:
    """One line of a list."""
    return {
        "id": consultation.consultation_id,
        "state": consultation.state.value,
        "at": round(consultation.created_at),
        "title": consultation.title,
        "agents": list(dict.fromkeys(turn.agent for turn in turns)),
        "turns": len(turns),
        "costUsd": known_cost(turns),
    } | ({"kind": consultation.kind} if consultation.kind != "consultation" else {})


def known_cost(turns: Sequence[ConsultTurnRecord]) -> float | None:
    """The sum when every turn that was asked has a cost, else None."""
    asked = [turn.cost for turn in turns if turn.started_at is not None]
    if not asked or any(cost is None for cost in asked):
        return None
    return dollars(sum(cost for cost in asked if cost is not None))


def dollars(cost: float | None) -> float | None:
    """An amount as it is shown: to a millionth, without what adding binary fractions leaves."""
    return None if cost is None else round(cost, 6)


def material_shown(material: Sequence[Material]) -> list[dict[str, Any]]:
    return [piece.wire() for piece in material]


def _seconds(turn: ConsultTurnRecord) -> float | None:
    if turn.started_at is None or turn.ended_at is None:
        return None
    return round(turn.ended_at - turn.started_at, 1)
