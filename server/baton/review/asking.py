"""The turns of a review: what each reviewer is asked first, once more in the right form, and again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton.consult.agents import agent_of
from baton.consult.content import Content
from baton.consult.context_material import Piece
from baton.consult.outgoing import prose
from baton.consult.plan import PlannedTurn, mark_for
from baton.consult.prompt import Asking, prompt
from baton.consult.request import TurnRequest
from baton.contract.consult import SourceMode
from baton.contract.review import answer_schema
from baton.ledger.consult_records import ConsultTurnRecord
from baton.policy.consult_rules import ConsultRules
from baton.review.question import REPAIR


@dataclass(frozen=True)
class Reviewer:
    """One agent, its seat, and why it was chosen."""

    agent: str
    seat: str
    why: str


@dataclass(frozen=True)
class Ask:
    """What all reviewers of a review are asked."""

    question: str
    pieces: Sequence[Piece]
    persona: str | None
    """The name of one in the policy."""
    rechecks: bool

    def first(
        self, reviewer: Reviewer, rules: ConsultRules, profile: Mapping[str, Any] | None
    ) -> PlannedTurn:
        """The question with the material, which is all that the reviewer sees."""
        schema = answer_schema(self.rechecks)
        asking = Asking(
            question=self.question,
            capability="review",
            source_mode=SourceMode.DOCUMENT,
            pieces=self.pieces,
            persona=prose(rules.personas[self.persona])[0] if self.persona else None,
            answer_schema=schema,
        )
        text = prompt(asking, mark_for(asking))
        record = _record(reviewer, rules, profile, text, persona=self.persona, resume=None)
        material = [piece.record() for piece in self.pieces]
        record = record.model_copy(update={"question": self.question, "material": material})
        return PlannedTurn(record, {"prompt": text, "schema": json.dumps(schema)})


def repair(
    content: Content,
    turn: ConsultTurnRecord,
    rules: ConsultRules,
    *,
    rechecks: bool,
) -> PlannedTurn:
    """Ask for the same findings in the right form; no material goes out again."""
    before = TurnRequest.model_validate(turn.request)
    answer = content.answer(turn)
    schema = answer_schema(rechecks)
    asking = Asking(
        question=REPAIR,
        capability="review",
        source_mode=SourceMode.DOCUMENT,
        pieces=[Piece("your findings", answer.text if answer else "")],
        answer_schema=schema,
        again=turn.session_id is not None,
    )
    text = prompt(asking, mark_for(asking))
    reviewer = Reviewer(turn.agent, before.seat, "its findings could not be read")
    record = _record(reviewer, rules, before.session, text, persona=None, resume=turn.session_id)
    record = record.model_copy(update={"question": REPAIR})
    return PlannedTurn(record, {"prompt": text, "schema": json.dumps(schema)})


def once_more(content: Content, turn: ConsultTurnRecord, rules: ConsultRules) -> PlannedTurn:
    """The first question of a seat again, word for word as it was approved."""
    texts = {
        name: content.read(turn.number, name).decode("utf-8", "replace") for name in ("prompt", "schema")
    }
    before = TurnRequest.model_validate(turn.request)
    reviewer = Reviewer(turn.agent, before.seat, "asked again")
    record = _record(reviewer, rules, before.session, texts["prompt"], persona=turn.persona, resume=None)
    return PlannedTurn(
        record.model_copy(update={"question": turn.question, "material": turn.material}), texts
    )


def _record(
    reviewer: Reviewer,
    rules: ConsultRules,
    profile: Mapping[str, Any] | None,
    text: str,
    *,
    persona: str | None,
    resume: str | None,
) -> ConsultTurnRecord:
    agent = agent_of(reviewer.agent, rules)
    request = TurnRequest(
        command=agent.command,
        web_search=agent.web_search,
        settings=dict(agent.extra),
        pass_names=list(rules.pass_to_agents),
        web=False,
        folder=None,
        session=None if profile is None else dict(profile),
        seat=reviewer.seat,
        resume=resume,
        has_schema=True,
        timeout_seconds=rules.timeout_seconds,
        idle_seconds=rules.idle_seconds,
        max_parallel=rules.max_parallel,
    )
    return ConsultTurnRecord(
        consultation_id="",
        number=0,
        round=0,
        agent=agent.id,
        runtime=agent.runtime.value,
        asked_model=agent.model,
        asked_effort=agent.effort,
        capability="review",
        persona=persona,
        source_mode=SourceMode.DOCUMENT,
        sees="given",
        why=reviewer.why,
        request=request.wire(),
        prompt_bytes=len(text.encode("utf-8", "replace")),
    )
