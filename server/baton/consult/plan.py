"""Decides what a call will ask: whom, with what text, under what bounds. Nothing is written or sent."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from baton.consult.adapters.protocol import Agent, Runtime, Sees
from baton.consult.agents import AdapterOf, Known, Look, agent_of, host_of
from baton.consult.content import Content
from baton.consult.context_material import CONTEXT, Piece, gather
from baton.consult.identity import Host
from baton.consult.outgoing import Sightings, cleaned, look_through, prose, refuse_secrets
from baton.consult.prompt import Asking, prompt
from baton.consult.request import TurnRequest
from baton.consult.routing import Candidate, Chosen, Wanted, choose, why_not
from baton.contract.consult import ConsultCall, SourceMode
from baton.contract.errors import InvalidInput, NoAgent, NotAllowed, NotFound, WrongState
from baton.contract.json_schema import schema_fault
from baton.contract.nearest import did_you_mean
from baton.contract.session import Session
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.engine.machine import bounds_of
from baton.ledger.consult_records import ConsultationRecord, ConsultTurnRecord
from baton.ledger.ids import new_consultation_id
from baton.policy.consult_rules import ConsultRules
from baton.policy.load import load_policy
from baton.process.there import is_folder

MAX_SCHEMA = 90_000
"""Bytes of a caller's schema. With the envelope it is one argument of a program, which systems bound."""

TITLE = 120
"""Characters of the question in lists."""


@dataclass(frozen=True)
class PlannedTurn:
    """One question to one agent, and its texts."""

    record: ConsultTurnRecord
    texts: Mapping[str, str]
    """By name, as the consultation's content keeps them."""


@dataclass(frozen=True)
class Plan:
    """What a call will ask."""

    consultation: ConsultationRecord
    turns: tuple[PlannedTurn, ...]
    rules: ConsultRules
    follows: bool
    """Another round of a consultation that there is."""
    refused: Mapping[str, str]
    """Why the other agents are not asked."""
    seen: Sightings = field(default_factory=Sightings)
    """What looks like credentials in what is sent as it is."""
    masked: Sequence[str] = ()
    """What was masked in prose."""


def rules_for(house: House, workspace: Path | None) -> ConsultRules:
    """The rules in force. Raises `NotAllowed` while consultation is off, `InvalidInput` for a fault."""
    rules = load_policy(house.codex_home, workspace).consult
    if not rules.enabled:
        raise NotAllowed(
            "consulting other agents is switched off; the person switches it on with `baton consult setup`,"
            f" or [consult] enabled = true in {house.codex_home / 'baton' / 'policy.toml'}"
        )
    return rules


def workspace_of(call_workspace: str | None, session: Session) -> Path | None:
    """The folder that a call is about; None when nobody named one. Raises `InvalidInput`."""
    named = call_workspace or session.cwd
    if named is None:
        return None
    path = Path(named)
    if not path.is_absolute() or not is_folder(path):
        raise InvalidInput(f"workspace: {named!r} is not the absolute path of a folder")
    return path.resolve()


def candidates_of(rules: ConsultRules, adapter_of: AdapterOf) -> dict[str, Candidate]:
    """The agents of the policy, before anybody looked for their programs."""
    return {
        name: Candidate(name, configured, web=adapter_of(Runtime(configured.runtime)).web)
        for name, configured in rules.agents.items()
    }


async def make_plan(
    house: House, call: ConsultCall, session: Session, look: Look, adapter_of: AdapterOf
) -> Plan:
    """Decide. Raises `BatonError` with the reason for everything that cannot be asked."""
    workspace = workspace_of(call.workspace, session)
    rules = rules_for(house, workspace)
    host = host_of(house.env, rules, session)
    _check_call(call, rules)
    wanted = _wanted(call, rules)
    pieces = await blocking(_material, house, call, session, rules, workspace)
    call, pieces, masked = await blocking(_clean, call, pieces)
    seen = await blocking(_look_through, call, pieces)

    def pick(candidates: Mapping[str, Candidate]) -> list[Seat]:
        if call.follow_up is not None:
            return _following(house, call.follow_up, call, candidates, host, wanted)
        chosen = choose(candidates, host, wanted)
        seats = seat_names([one.candidate.id for one in chosen])
        return [Seat(one, seat, None, ()) for one, seat in zip(chosen, seats, strict=True)]

    candidates = candidates_of(rules, adapter_of)
    asking = await find_seats(house, rules, look, candidates, pick)
    if call.follow_up is None:
        consultation = _new(call, rules, host, workspace)
    else:
        consultation = house.ledger.consultation(call.follow_up)
        if consultation.keeps_text and not rules.store_full_content:
            raise NotAllowed(
                f"the text of {call.follow_up} is kept, which consult.store_full_content = false forbids;"
                " ask anew"
            )
    maker = _Maker(call, session, rules, workspace, pieces, adapter_of)
    turns = tuple(maker.turn(seat, consultation) for seat in asking)
    refused = {
        name: reason
        for name, candidate in candidates.items()
        if (reason := why_not(candidate, host, wanted, by_name=bool(call.targets))) is not None
    }
    if not call.dry_run and not call.send_secrets:
        refuse_secrets(seen.secrets, "take them out, or call with sendSecrets when the person agrees")
    return Plan(consultation, turns, rules, call.follow_up is not None, refused, seen, masked)


async def find_seats(
    house: House,
    rules: ConsultRules,
    look: Look,
    candidates: dict[str, Candidate],
    pick: Callable[[Mapping[str, Candidate]], list[Seat]],
) -> list[Seat]:
    """What is picked once every program that would be started has been looked for.

    Only those are looked for: a look starts a program. `candidates` is told what is missing.
    """
    looked: set[str] = set()
    while True:
        seats = await blocking(pick, candidates)
        new = {seat.chosen.candidate.id for seat in seats} - looked
        if not new:
            return seats
        known: dict[str, Known] = {}

        async def one(name: str, into: dict[str, Known] = known) -> None:
            into[name] = await look(house, agent_of(name, rules))

        async with anyio.create_task_group() as tasks:
            for name in new:
                tasks.start_soon(one, name)
        looked |= new
        for name, found in known.items():
            candidates[name] = replace(candidates[name], missing=found.missing)


@dataclass(frozen=True)
class Seat:
    """An agent's place in a consultation."""

    chosen: Chosen
    name: str
    resume: str | None
    earlier: Sequence[Piece]
    """What was said before, for a program that does not remember it."""


def _check_call(call: ConsultCall, rules: ConsultRules) -> None:
    if call.persona is not None and call.persona not in rules.personas:
        known = did_you_mean(call.persona, sorted(rules.personas))
        raise InvalidInput(f"persona: no persona {call.persona!r}; {known}")
    if call.answer_schema is not None:
        fault = schema_fault(call.answer_schema, MAX_SCHEMA)
        if fault is not None:
            raise InvalidInput(f"answerSchema: {fault}")
    has_material = bool(call.context or call.context_paths)
    if call.source_mode is SourceMode.DOCUMENT and not has_material and call.follow_up is None:
        raise InvalidInput("sourceMode: document needs material: context or contextPaths")
    if call.source_mode is SourceMode.MODEL and has_material:
        raise InvalidInput(
            "sourceMode: model takes no material; leave context and contextPaths out, or use auto"
        )
    if call.follow_up is not None and (call.count is not None or call.both_sides):
        raise InvalidInput("followUp: goes on with the agents that there are; leave count and bothSides out")


def _wanted(call: ConsultCall, rules: ConsultRules) -> Wanted:
    return Wanted(
        capability=call.capability.value,
        targets=tuple(call.targets),
        count=call.count,
        both_sides=call.both_sides,
        source_mode=call.source_mode,
        margin=rules.score_margin,
        most=rules.max_agents,
    )


def _material(
    house: House, call: ConsultCall, session: Session, rules: ConsultRules, workspace: Path | None
) -> list[Piece]:
    return gather(
        call.context,
        call.context_paths,
        workspace=workspace,
        roots=rules.context_roots,
        may_read=bounds_of(session, house.env).may_read,
        most=rules.max_context_bytes,
    )


def _clean(call: ConsultCall, pieces: Sequence[Piece]) -> tuple[ConsultCall, list[Piece], list[str]]:
    """The call and its material with credentials masked in prose, and what was masked."""
    question, masked = prose(call.question)
    clean, more = cleaned(pieces, prose_labels=frozenset((CONTEXT,)))
    return call.model_copy(update={"question": question}), clean, [*masked, *more]


def _look_through(call: ConsultCall, pieces: Sequence[Piece]) -> Sightings:
    schema = []
    if call.answer_schema is not None:
        schema.append(Piece("answerSchema", json.dumps(call.answer_schema, ensure_ascii=False)))
    return look_through([*pieces, *schema])


def _new(call: ConsultCall, rules: ConsultRules, host: Host, workspace: Path | None) -> ConsultationRecord:
    return ConsultationRecord(
        consultation_id=new_consultation_id(),
        workspace=None if workspace is None else str(workspace),
        host={"runtime": host.runtime, "models": list(host.models)},
        title=" ".join(call.question.split())[:TITLE] if rules.store_full_content else None,
        keeps_text=rules.store_full_content,
    )


def seat_names(agents: Sequence[str]) -> list[str]:
    """A name for each place: the agent's, numbered where it has several."""
    return [
        agent if agents.count(agent) == 1 else f"{agent}-{agents[:place].count(agent) + 1}"
        for place, agent in enumerate(agents)
    ]


def _following(
    house: House,
    consultation_id: str,
    call: ConsultCall,
    candidates: Mapping[str, Candidate],
    host: Host,
    wanted: Wanted,
) -> list[Seat]:
    """The seats that a follow-up goes on in. Raises `BatonError` when one of them cannot be asked."""
    consultation = house.ledger.consultation(consultation_id)
    if not consultation.state.at_rest:
        raise WrongState(
            f"consultation {consultation_id} is at work; wait for it, or cancel it, with records"
        )
    latest: dict[str, list[ConsultTurnRecord]] = {}
    for turn in house.ledger.consult_turns(consultation_id):
        latest.setdefault(TurnRequest.model_validate(turn.request).seat, []).append(turn)
    members = {turns[-1].agent for turns in latest.values()}
    for target in call.targets:
        if target not in members:
            raise InvalidInput(
                f"targets: {target!r} is not in {consultation_id}; it has {', '.join(sorted(members))}"
            )
    content = Content(house, consultation)
    seats = []
    for name, turns in latest.items():
        last = turns[-1]
        if call.targets and last.agent not in call.targets:
            continue
        candidate = candidates.get(last.agent)
        reason = "the policy has no such agent any more"
        if candidate is not None:
            reason = why_not(candidate, host, wanted, by_name=True) or ""
        if candidate is None or reason:
            raise NoAgent(f"{last.agent} is not asked again: {reason}")
        resume = next((turn.session_id for turn in reversed(turns) if turn.session_id), None)
        earlier = () if resume else _earlier(content, turns)
        seats.append(Seat(Chosen(candidate, "it answered before", last.side), name, resume, earlier))
    return seats


def _earlier(content: Content, turns: Sequence[ConsultTurnRecord]) -> list[Piece]:
    pieces = []
    try:
        for turn in turns:
            answer = content.answer(turn)
            pieces.append(Piece(f"earlier question {turn.number}", content.question(turn)))
            if answer is not None:
                pieces.append(Piece(f"your earlier answer {turn.number}", answer.text))
    except NotFound:
        raise NotFound(
            f"{turns[-1].agent} does not remember the consultation, and its text is not kept; ask anew"
        ) from None
    return pieces


@dataclass(frozen=True)
class _Maker:
    """Makes the turns of one call."""

    call: ConsultCall
    session: Session
    rules: ConsultRules
    workspace: Path | None
    pieces: Sequence[Piece]
    adapter_of: AdapterOf

    def turn(self, seat: Seat, consultation: ConsultationRecord) -> PlannedTurn:
        call, candidate = self.call, seat.chosen.candidate
        agent = agent_of(candidate.id, self.rules)
        folder = self._folder(agent)
        pieces = [*seat.earlier, *self.pieces]
        asking = Asking(
            question=call.question,
            capability=call.capability.value,
            source_mode=call.source_mode,
            pieces=pieces,
            persona=prose(self.rules.personas[call.persona])[0] if call.persona else None,
            side=seat.chosen.side,
            reads_folder=folder is not None,
            answer_schema=call.answer_schema,
            again=seat.resume is not None,
        )
        text = prompt(asking, mark_for(asking))
        texts = {"prompt": text}
        if not consultation.keeps_text:
            texts["question"] = call.question
        if call.answer_schema is not None:
            texts["schema"] = json.dumps(call.answer_schema, ensure_ascii=False)
        timeout = self.rules.timeout_seconds
        request = TurnRequest(
            command=agent.command,
            web_search=agent.web_search,
            settings=dict(agent.extra),
            pass_names=list(self.rules.pass_to_agents),
            web=call.source_mode is SourceMode.WEB,
            folder=None if folder is None else str(folder),
            session=self.session.profile,
            seat=seat.name,
            resume=seat.resume,
            has_schema=call.answer_schema is not None,
            timeout_seconds=min(timeout, call.timeout_seconds or timeout),
            idle_seconds=self.rules.idle_seconds,
            max_parallel=self.rules.max_parallel,
        )
        record = ConsultTurnRecord(
            consultation_id=consultation.consultation_id,
            number=0,
            round=0,
            agent=agent.id,
            runtime=agent.runtime.value,
            asked_model=agent.model,
            asked_effort=agent.effort,
            capability=call.capability.value,
            persona=call.persona,
            side=seat.chosen.side,
            source_mode=call.source_mode,
            sees="given" if folder is None else "repository",
            why=seat.chosen.why,
            request=request.wire(),
            question=call.question if consultation.keeps_text else None,
            material=[piece.record() for piece in pieces] if consultation.keeps_text else [],
            prompt_bytes=len(text.encode("utf-8", "replace")),
        )
        return PlannedTurn(record, texts)

    def _folder(self, agent: Agent) -> Path | None:
        held = self.adapter_of(agent.runtime).sees is Sees.REPOSITORY
        wanted = self.rules.read_repository and self.call.source_mode is SourceMode.AUTO
        return self.workspace if held and wanted else None


def mark_for(asking: Asking) -> str:
    """A mark for `prompt`: unguessable, and nowhere in the material."""
    while True:
        mark = f"material-{secrets.token_hex(8)}"
        if not any(mark in piece.text or mark in piece.label for piece in asking.pieces):
            return mark
