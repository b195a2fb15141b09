"""One table of what a service may answer, and what must become of it, for each command line.

Two tests read it: with the real command line against the scripted service, and with what that very
command line printed then, as it is recorded beside this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from baton.contract.reply import ReplyFailure as F
from baton.simulate.script import Claiming, Drop, Fail, Say, Stall, fail
from baton.simulate.service import Answer, Ends, Raw, Unfinished

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Case:
    """What the service answers, and the reply that comes of it."""

    name: str
    answers: tuple[Answer, ...]
    failure: F | None = None
    text: str | None = None
    structured: Any = None
    with_schema: bool = False
    says: str = ""
    """What stands in the detail."""
    requests: int = 1
    usage: int | None = None
    """Total tokens; None: not told."""
    idle_seconds: float = 60.0
    recorded: bool = True
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further attributes of the reply."""


def error(status: int, kind: str, message: str, **headers: str) -> Fail:
    """An error as these services word it."""
    body = {"type": "error", "error": {"type": kind, "code": kind, "message": message}}
    return fail(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


UNAUTHORIZED = error(401, "authentication_error", "invalid x-api-key")
LIMITED = error(429, "rate_limit_error", "Rate limit reached", retry_after="3600")
UNKNOWN = error(404, "model_not_found", "The model does not exist")
OVERLOADED = error(529, "overloaded_error", "Overloaded")

ANSWER = '{"answer":"4"}'

CLAUDE = (
    Case("text", (Say("four"),), text="four", usage=157, more={"model": "claude-sonnet-5", "attested": True}),
    Case(
        "schema",
        (Say(ANSWER),),
        text=ANSWER,
        structured={"answer": "4"},
        with_schema=True,
        usage=157,
    ),
    Case(
        "prose",
        (Say("it is four"),),
        F.BAD_ANSWER,
        text="it is four",
        with_schema=True,
        requests=2,
        usage=314,
        says="no JSON",
    ),
    Case("shape", (Say('{"answer":4}'),), F.BAD_ANSWER, with_schema=True, requests=5, says="must be string"),
    Case(
        "unauthorized",
        (UNAUTHORIZED,),
        F.AUTH,
        requests=2,
        says="Invalid API key",
        more={"required_action": "claude auth login"},
    ),
    Case("limited", (LIMITED,), F.RATE_LIMIT, says="429"),
    Case("unknown-model", (UNKNOWN,), F.UNKNOWN_MODEL, requests=2, says="claude-sonnet-5"),
    Case("overloaded", (OVERLOADED,), F.OVERLOADED, requests=2, says="529"),
    Case("cut", (Ends("half", "length"),), F.CUT, text="half", requests=4, usage=628, says="maximum"),
    Case("refused", (Ends("", "content_filter"),), F.REFUSED, requests=2, usage=314),
    Case("html", (Raw("<html>"),), F.NETWORK, requests=2, says="malformed"),
    Case("empty-answer", (Say(""),), F.NO_ANSWER, requests=2, usage=314),
    Case(
        "other-model",
        (Claiming("claude-haiku-4-5", Say("hi")),),
        F.ROUTE_MISMATCH,
        text="hi",
        usage=157,
        says="claude-haiku-4-5 answered, not claude-sonnet-5",
        more={"model": "claude-haiku-4-5"},
    ),
    Case(
        "dated-model",
        (Claiming("claude-sonnet-5-20261001", Say("hi")),),
        text="hi",
        usage=157,
        more={"model": "claude-sonnet-5-20261001", "attested": True},
    ),
)

OPENCODE = (
    Case(
        "schema",
        (Say(ANSWER),),
        text=ANSWER,
        structured={"answer": "4"},
        with_schema=True,
        usage=107,
        more={"attested": False, "model": "simulated/m1"},
    ),
    Case(
        "unauthorized",
        (UNAUTHORIZED,),
        F.AUTH,
        says="invalid x-api-key",
        more={"required_action": "opencode auth login"},
    ),
    Case("cut", (Ends("half", "length"),), F.CUT, text="half", usage=107),
    Case("refused", (Ends("", "content_filter"),), F.REFUSED, usage=107),
    Case("empty-answer", (Say(""),), F.NO_ANSWER, usage=107, says="stop"),
    Case("unknown-model", (UNKNOWN,), F.UNKNOWN_MODEL, says="does not exist"),
    # Endless without us: OpenCode asks again at once, whatever happens.
    Case("no-reason", (Unfinished("ha"),), F.LOOP, requests=2, says="without a reason", recorded=False),
    Case("reset", (Drop(),), F.LOOP, requests=2, says="without a reason", recorded=False),
    # It would sleep the whole hour in silence.
    Case("limited", (LIMITED,), F.RATE_LIMIT, says="it kept trying", idle_seconds=15.0, recorded=False),
)

COPILOT = (
    Case(
        "schema",
        (Say(ANSWER),),
        text=ANSWER,
        structured={"answer": "4"},
        with_schema=True,
        usage=107,
        more={"attested": False, "model": "simulated-1"},
    ),
    Case(
        "unauthorized",
        (UNAUTHORIZED,),
        F.AUTH,
        requests=3,
        says="with provider",
        more={"required_action": None},
    ),
    Case("limited", (LIMITED,), F.RATE_LIMIT, says="Rate limit reached"),
    Case("unknown-model", (UNKNOWN,), F.UNKNOWN_MODEL, says="not found on provider"),
    Case("bad-request", (error(400, "invalid_request_error", "no"),), F.BAD_REQUEST),
    Case("cut", (Ends("half", "length"),), F.CUT, text="half", requests=3, usage=321),
    Case("refused", (Ends("", "content_filter"),), F.REFUSED, usage=107),
    Case("html", (Raw("<html>"),), F.NETWORK, requests=6, says="not valid JSON"),
    Case("empty-answer", (Say(""),), F.NO_ANSWER, usage=107, says="No response"),
)

SILENT = Case("silent", (Stall(),), F.IDLE_TIMEOUT, says="no output for", idle_seconds=8.0, recorded=False)
"""Each of them would wait far longer than a person does."""

CASES: Mapping[str, tuple[Case, ...]] = {
    "claude": (*CLAUDE, SILENT),
    "opencode": OPENCODE,
    "copilot": (*COPILOT, SILENT),
}
