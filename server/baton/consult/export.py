"""One consultation with everything it owns, as JSON: for `baton export`, and as an MCP resource."""

from __future__ import annotations

from typing import Any

from baton.consult.content import Content
from baton.consult.present import known_cost, material_shown
from baton.contract.errors import NotFound
from baton.engine.house import House
from baton.ledger.consult_records import ConsultTurnRecord


def exported(house: House, consultation_id: str, *, prompts: bool = False) -> dict[str, Any]:
    """The record as kept, without the programs' session ids. With `prompts` the whole texts that were sent.

    Raises `NotFound`.
    """
    consultation = house.ledger.consultation(consultation_id)
    turns = house.ledger.consult_turns(consultation_id)
    content = Content(house, consultation)
    return {
        "consultationId": consultation.consultation_id,
        "kind": consultation.kind,
        "parent": consultation.parent,
        "state": consultation.state.value,
        "workspace": consultation.workspace,
        "host": consultation.host,
        "title": consultation.title,
        "textKept": consultation.keeps_text,
        "createdAt": consultation.created_at,
        "endedAt": consultation.ended_at,
        "costUsd": known_cost(turns),
        "turns": [_turn(house, content, turn, prompts) for turn in turns],
    }


def _turn(house: House, content: Content, turn: ConsultTurnRecord, prompts: bool) -> dict[str, Any]:
    answer = content.answer(turn)
    told: dict[str, Any] = {
        "turn": turn.number,
        "round": turn.round,
        "agent": turn.agent,
        "runtime": turn.runtime,
        "askedModel": turn.asked_model,
        "askedEffort": turn.asked_effort,
        "model": turn.model,
        "attested": turn.attested,
        "why": turn.why,
        "capability": turn.capability,
        "persona": turn.persona,
        "side": turn.side,
        "sourceMode": turn.source_mode.value,
        "sees": turn.sees,
        "state": turn.state.value,
        "question": _or_none(content, turn),
        "material": material_shown(turn.material),
        "promptBytes": turn.prompt_bytes,
        "answer": None if answer is None else answer.wire(),
        "usage": None if turn.usage is None else turn.usage.wire(),
        "costUsd": turn.cost,
        "failure": turn.failure,
        "detail": turn.detail,
        "notices": turn.notices,
        "queuedAt": turn.queued_at,
        "startedAt": turn.started_at,
        "endedAt": turn.ended_at,
        "artifacts": {
            kept.name: {"sha256": kept.artifact, "bytes": kept.size}
            for kept in house.ledger.consult_artifacts(turn.consultation_id, turn.number)
        },
    }
    if prompts:
        try:
            told["prompt"] = content.read(turn.number, "prompt").decode("utf-8", "replace")
        except NotFound:
            told["prompt"] = None
    return told


def _or_none(content: Content, turn: ConsultTurnRecord) -> str | None:
    try:
        return content.question(turn)
    except NotFound:
        return None
