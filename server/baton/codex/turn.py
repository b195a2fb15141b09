"""One turn of a worker, from its events to its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from baton.codex.events import Notification
from baton.codex.failures import classify
from baton.codex.launch import speaks_of_our_settings
from baton.codex.tokens import Tally
from baton.contract.evidence import TurnFailure, Usage
from baton.contract.states import FailureClass

MAX_NOTICES = 50
MAX_NOTICE = 500
"""Characters kept of one notice."""

FOREIGN_ITEMS = ("mcpToolCall", "collabAgentToolCall", "collabToolCall", "subAgentActivity", "webSearch")
"""Kinds of items that a worker should not be able to make."""


class TurnStatus(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Deadlines:
    """When waiting for a turn ends, in seconds; whichever comes first interrupts it."""

    start: float = 60.0
    """Until the first event of any kind."""
    idle: float = 300.0
    """From one event to the next."""
    turn: float = 1800.0
    """For the whole turn."""

    def next(self, begun: float, last: float | None) -> tuple[float, FailureClass]:
        """The moment at which the nearest deadline comes, and what it is called."""
        if last is None:
            nearest = (begun + self.start, FailureClass.START_TIMEOUT)
        else:
            nearest = (last + self.idle, FailureClass.IDLE_TIMEOUT)
        return min(nearest, (begun + self.turn, FailureClass.TURN_TIMEOUT))

    def failure(self, which: FailureClass) -> TurnFailure:
        """What to say when a deadline has fired."""
        texts = {
            FailureClass.START_TIMEOUT: f"no sign of life within {self.start:g} s (start deadline)",
            FailureClass.IDLE_TIMEOUT: f"no event for {self.idle:g} s (idle deadline)",
            FailureClass.TURN_TIMEOUT: f"not done within {self.turn:g} s (turn deadline)",
        }
        return TurnFailure(failure_class=which, message=texts[which])


@dataclass(frozen=True)
class TurnOutcome:
    """How a turn ended and what it cost. A final message is text, whatever was asked for."""

    status: TurnStatus
    turn_id: str | None
    final_message: str | None = None
    """The last message of the worker in this turn."""
    failure: TurnFailure | None = None
    """Why it did not complete; None for a completed turn and for one interrupted on request."""
    usage: Usage = field(default_factory=Usage)
    """Tokens of this turn alone; unknown when Codex reported none."""
    notices: tuple[str, ...] = ()
    """Recoverable errors, warnings, declined requests and other things worth knowing, oldest first."""
    commands: int = 0
    """Commands that Codex reported; one that the sandbox stops at once is not among them."""
    patches: int = 0
    server_claimed_model: str | None = None
    """The model to which Codex says the service rerouted; None proves nothing."""
    effective_model: str | None = None
    effective_effort: str | None = None
    """What Codex last reported as the thread's settings; None when it reported none in this turn."""


@dataclass
class TurnRecord:
    """Collects the events of one turn; pure but for its own fields."""

    turn_id: str | None = None
    status: TurnStatus | None = None
    final_message: str | None = None
    failure: TurnFailure | None = None
    claimed: str | None = None
    model: str | None = None
    effort: str | None = None
    notices: list[str] = field(default_factory=list)
    commands: set[str] = field(default_factory=set)
    patches: set[str] = field(default_factory=set)
    tokens: Tally = field(default_factory=Tally)

    def take(self, event: Notification) -> None:
        """Note one event. Events of other turns of the thread are passed over."""
        params = event.params
        turn = params.get("turn")
        turn_id = params.get("turnId") or (turn.get("id") if isinstance(turn, dict) else None)
        if turn_id is not None and turn_id != self.turn_id:
            if event.method == "thread/tokenUsage/updated":
                self.tokens.rebase(_table(_table(params, "tokenUsage"), "total"))
            return
        match event.method:
            case "item/started" | "item/completed":
                self._item(_table(params, "item"))
            case "thread/tokenUsage/updated":
                usage = _table(params, "tokenUsage")
                self.tokens.add(_table(usage, "total"), _table(usage, "last"))
            case "turn/completed":
                self._completed(_table(params, "turn"))
            case "thread/settings/updated":
                settings = _table(params, "threadSettings")
                self.model = _text(settings.get("model")) or self.model
                self.effort = _text(settings.get("effort")) or self.effort
            case "model/rerouted":
                self.claimed = _text(params.get("toModel"))
                self.note(f"the service answered with model {self.claimed} ({params.get('reason')})")
            case "error":
                self._error(params)
            case "warning" | "guardianWarning" | "deprecationNotice" | "configWarning":
                text = str(params.get("message") or params.get("summary") or event.method)
                if not speaks_of_our_settings(text):
                    self.note(text)
            case method if method.startswith("declined/"):
                self.note(f"declined: {method.removeprefix('declined/')}")

    def note(self, text: str) -> None:
        text = " ".join(text.split())[:MAX_NOTICE]
        if text and text not in self.notices and len(self.notices) < MAX_NOTICES:
            self.notices.append(text)

    def outcome(self) -> TurnOutcome:
        """What has been collected; a turn without an end counts as interrupted."""
        return TurnOutcome(
            status=self.status or TurnStatus.INTERRUPTED,
            turn_id=self.turn_id,
            final_message=self.final_message,
            failure=self.failure,
            usage=self.tokens.usage(),
            notices=tuple(self.notices),
            commands=len(self.commands),
            patches=len(self.patches),
            server_claimed_model=self.claimed,
            effective_model=self.model,
            effective_effort=self.effort,
        )

    def _item(self, item: Mapping[str, Any]) -> None:
        kind = item.get("type")
        if kind == "agentMessage":
            self.final_message = _text(item.get("text"))
        elif kind == "commandExecution":
            self.commands.add(str(item.get("id")))
        elif kind == "fileChange":
            self.patches.add(str(item.get("id")))
            if item.get("status") in ("failed", "declined"):
                self.note(f"a patch was {item['status']}")
        elif kind in FOREIGN_ITEMS:
            self.note(f"the worker used a tool that it should not have: {kind} {item.get('tool') or ''}")

    def _error(self, params: Mapping[str, Any]) -> None:
        error = _table(params, "error")
        text = " ".join(str(error.get(key) or "") for key in ("message", "additionalDetails")).strip()
        if params.get("willRetry"):
            self.note(f"recovered: {text}")
        else:
            # The end of the turn decides; until it comes this is the best explanation there is.
            self.failure = classify(error)

    def _completed(self, turn: Mapping[str, Any]) -> None:
        try:
            self.status = TurnStatus(str(turn.get("status")))
        except ValueError:
            self.status = TurnStatus.FAILED
        error = turn.get("error")
        if self.status is TurnStatus.FAILED:
            if isinstance(error, dict) or self.failure is None:
                self.failure = classify(error if isinstance(error, dict) else None)
        else:
            if self.failure is not None:
                self.note(f"error during the turn: {self.failure.message}")
            self.failure = None


def _table(params: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = params.get(key)
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
