"""What the ledger keeps of consultations. Times are seconds since 1970, costs are US dollars."""

from __future__ import annotations

from baton.contract.consult import Answer, ConsultationState, Material, Side, SourceMode, TurnState
from baton.contract.evidence import Usage
from baton.contract.reply import ReplyFailure
from baton.ledger.records import JsonObject, PathText, Record


class ConsultationRecord(Record):
    """One consultation: a question to one or several agents, and its follow-ups."""

    consultation_id: str
    kind: str = "consultation"
    """What it was asked for: `consultation`, or the kind of work that it is a part of."""
    parent: str | None = None
    """The id of that work."""
    workspace: PathText | None = None
    host: JsonObject = {}
    """Who asks: runtime and model, as far as known."""
    title: str | None = None
    """The beginning of the question; None where no text is kept."""
    keeps_text: bool = True
    """False: no text of it is in the ledger; see `baton.consult.content`."""
    state: ConsultationState = ConsultationState.WORKING
    cancel_asked: float | None = None
    starts: int = 0
    """How often a process was started for the round that is at work."""
    created_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None


class ConsultTurnRecord(Record):
    """One question put to one agent: written before its program starts, completed when it has ended."""

    turn: int = 0
    """Given by the ledger; the order of the queue."""
    consultation_id: str
    number: int
    """From 1 within the consultation."""
    round: int
    """1 for the first question, one more for each follow-up."""
    agent: str
    runtime: str
    asked_model: str | None = None
    asked_effort: str | None = None
    model: str | None = None
    """The model that answered, as far as it was told."""
    attested: bool = False
    """Whether `model` was reported, not only asked for."""
    capability: str
    persona: str | None = None
    side: Side | None = None
    source_mode: SourceMode
    sees: str
    """What the agent can read: `repository` or `given`."""
    why: str
    """Why this agent: one line."""
    request: JsonObject = {}
    """The rest of what its process needs: the agent's settings, deadlines, the schema."""
    question: str | None = None
    material: list[Material] = []
    prompt_bytes: int = 0
    state: TurnState = TurnState.QUEUED
    answer: Answer | None = None
    usage: Usage | None = None
    cost: float | None = None
    session_id: str | None = None
    failure: ReplyFailure | None = None
    detail: str | None = None
    """One line: what went wrong, or what is worth knowing of a good answer."""
    notices: list[str] = []
    retry_after: float | None = None
    required_action: str | None = None
    queued_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None


class ConsultArtifact(Record):
    """An artifact that a turn needs: `prompt`, `stdout` or `stderr`."""

    consultation_id: str
    number: int
    name: str
    artifact: str
    size: int
