"""Looks at what was asked: read, list, search, strengths, cancel, delete."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from typing import Any

import anyio

from baton.consult.adapters.protocol import Runtime, Sees
from baton.consult.agents import AdapterOf, Known, Look, agent_of, host_of
from baton.consult.content import Content, held_folder, work_folder
from baton.consult.plan import candidates_of, rules_for, workspace_of
from baton.consult.present import known_cost, listed, present, turn_shown, whole_answer
from baton.consult.routing import Wanted, why_not
from baton.consult.sessions import forget
from baton.consult.strengths import shown
from baton.contract.consult import RecordPart, RecordsAction, RecordsCall
from baton.contract.errors import InvalidInput, NotFound
from baton.contract.session import Session
from baton.engine.house import House
from baton.engine.paging import entries_window, text_window
from baton.ledger.consult_records import ConsultationRecord, ConsultTurnRecord

LISTED = 200
"""The newest consultations, of which a list shows what fits."""

FOUND = 25

_FILES = {RecordPart.PROMPT: "prompt", RecordPart.RAW: "stdout", RecordPart.ERRORS: "stderr"}


class Records:
    """What is kept of consultations, over one open house."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._ledger = house.ledger

    def do(self, call: RecordsCall) -> dict[str, Any]:
        """Answer one `records`, but for `wait` and `agents`. Raises `BatonError`."""
        match call.action:
            case RecordsAction.LIST:
                return self._list(call)
            case RecordsAction.SEARCH:
                return self._search(call)
            case RecordsAction.STRENGTHS:
                rows = [shown(row) for row in self._ledger.consult_strengths()]
                return entries_window("strengths", rows, call.offset, call.limit)
        if call.id is None:
            raise InvalidInput(f"id: {call.action.value} needs the id of a consultation")
        consultation = self._ledger.consultation(call.id)
        match call.action:
            case RecordsAction.CANCEL:
                return self._cancel(consultation)
            case RecordsAction.DELETE:
                return self._delete(consultation, call.confirm)
        return self._read(consultation, call)

    async def agents(self, session: Session, look: Look, adapter_of: AdapterOf) -> dict[str, Any]:
        """Every agent, whether it can be asked from this session, and why not."""
        rules = rules_for(self._house, workspace_of(None, session))
        host = host_of(self._house.env, rules, session)
        known: dict[str, Known] = {}

        async def one(name: str) -> None:
            known[name] = await look(self._house, agent_of(name, rules))

        async with anyio.create_task_group() as tasks:
            for name, configured in rules.agents.items():
                if configured.enabled:
                    tasks.start_soon(one, name)
        listing = []
        for name, candidate in candidates_of(rules, adapter_of).items():
            seen = known.get(name)
            found = replace(candidate, missing=seen.missing if seen else None)
            reason = why_not(found, host, Wanted("any"), by_name=True)
            adapter = adapter_of(Runtime(candidate.agent.runtime))
            listing.append(
                {
                    "agent": name,
                    "model": candidate.agent.model or None,
                    "canBeAsked": reason is None,
                    "scores": dict(candidate.agent.scores),
                    "sees": "repository" if adapter.sees is Sees.REPOSITORY else "given",
                    "loggedIn": seen.logged_in if seen is not None else None,
                }
                | ({"why": reason} if reason else {})
            )
        return {
            "host": {"runtime": host.runtime, "models": list(host.models)},
            "agents": listing,
            "personas": sorted(rules.personas),
        }

    def _list(self, call: RecordsCall) -> dict[str, Any]:
        found = self._ledger.consultations(LISTED, call.offset)
        lines = [listed(one, self._ledger.consult_turns(one.consultation_id)) for one in found]
        window = entries_window("consultations", lines, 0, call.limit)
        if "nextOffset" in window:
            window["nextOffset"] += call.offset
        return window

    def _search(self, call: RecordsCall) -> dict[str, Any]:
        if not call.query or not call.query.strip():
            raise InvalidInput("query: search needs words")
        hits = [
            {"id": hit.consultation_id, "turn": hit.number, "agent": hit.agent, "excerpt": hit.excerpt}
            for hit in self._ledger.search_consultations(call.query, FOUND)
        ]
        return entries_window("hits", hits, call.offset, call.limit)

    def _read(self, consultation: ConsultationRecord, call: RecordsCall) -> dict[str, Any]:
        known: dict[str, Any] = {"consultationId": consultation.consultation_id, "what": call.what.value}
        turns = self._ledger.consult_turns(consultation.consultation_id)
        content = Content(self._house, consultation)
        if call.what is RecordPart.SUMMARY:
            if call.turn is None:
                asked = [(turn, content.answer(turn)) for turn in turns]
                return known | present(consultation, asked) | {"knownCostUsd": known_cost(turns)}
            turn = _turn(turns, call.turn)
            return known | turn_shown(turn, content.answer(turn))
        if call.what is RecordPart.ANSWER and call.turn is None:
            last = [turn for turn in turns if turn.round == turns[-1].round]
            parts = [(turn, content.answer(turn)) for turn in last]
            text = "\n".join(whole_answer(turn, answer) for turn, answer in parts if answer is not None)
        else:
            turn = _turn(turns, call.turn)
            text = self._text(content, turn, call.what)
            known["turn"] = turn.number
        return known | text_window(text, call.offset, call.limit)

    def _text(self, content: Content, turn: ConsultTurnRecord, what: RecordPart) -> str:
        match what:
            case RecordPart.QUESTION:
                return content.question(turn)
            case RecordPart.ANSWER:
                answer = content.answer(turn)
                if answer is None:
                    raise NotFound(f"turn {turn.number} has no answer; it is {turn.state.value}")
                return whole_answer(turn, answer)
        return content.read(turn.number, _FILES[what]).decode("utf-8", "replace")

    def _cancel(self, consultation: ConsultationRecord) -> dict[str, Any]:
        asked = self._ledger.ask_to_cancel(consultation.consultation_id)
        return {
            "consultationId": asked.consultation_id,
            "state": asked.state.value,
            "did": "nothing: it is at rest" if asked.state.at_rest else "asked to stop; what came is kept",
            "next": f"records wait {asked.consultation_id}",
        }

    def _delete(self, consultation: ConsultationRecord, confirm: str | None) -> dict[str, Any]:
        name = consultation.consultation_id
        turns = self._ledger.consult_turns(name)
        token = deletion_token(consultation, turns)
        if confirm is None:
            return {
                "consultationId": name,
                "state": consultation.state.value,
                "title": consultation.title,
                "turns": len(turns),
                "confirm": token,
                "next": "show the person what goes; when they agree, records delete again with confirm",
            }
        if confirm != token:
            raise InvalidInput(
                "confirm: not the token of this consultation as it is now; delete without it first"
            )
        return {"consultationId": name, "did": "deleted", "freedBytes": delete(self._house, name)}


def deletion_token(consultation: ConsultationRecord, turns: list[ConsultTurnRecord]) -> str:
    """What confirms a deletion: changes with everything that happens to the consultation."""
    state = f"{consultation.consultation_id} {consultation.updated_at!r} {len(turns)}"
    return hashlib.sha256(state.encode()).hexdigest()[:12]


def delete(house: House, consultation_id: str) -> int:
    """Forget a consultation, its texts, and what its programs keep of it in our folder; bytes freed.

    Bytes are those of artifacts. What programs keep in homes of their own, and providers, is theirs. Raises
    `NotFound`, `WrongState`.
    """
    turns = house.ledger.consult_turns(consultation_id)
    freed = house.ledger.delete_consultation(consultation_id, house.artifacts)
    for turn in turns:
        if turn.session_id is not None:
            forget(house, Runtime(turn.runtime), turn.session_id)
    for folder in (work_folder(house, consultation_id), held_folder(house, consultation_id)):
        shutil.rmtree(folder, ignore_errors=True)
    (house.state.root / "logs" / f"{consultation_id}.log").unlink(missing_ok=True)
    return freed


def _turn(turns: list[ConsultTurnRecord], number: int | None) -> ConsultTurnRecord:
    if number is None:
        return turns[-1]
    for turn in turns:
        if turn.number == number:
            return turn
    raise NotFound(f"turn: there is no turn {number}; there are {len(turns)}")
