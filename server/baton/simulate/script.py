"""The steps of a script: what the scripted model answers to one request of one Codex thread.

A script is a sequence of steps. Each model request of a thread takes the next one. A step may also be a
function of the request; what it returns (one step or several) takes its place.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from baton.simulate.request import Request


@dataclass(frozen=True)
class Say:
    """A message; it ends the turn."""

    text: str


@dataclass(frozen=True)
class Reason:
    """A reasoning item ahead of another step's items."""

    summary: str
    then: Action


@dataclass(frozen=True)
class Shell:
    """One shell command. `options` are further arguments of the tool (`yield_time_ms`, `timeout_ms` …)."""

    command: str
    workdir: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Patch:
    """One call of the patch tool."""

    text: str


@dataclass(frozen=True)
class Call:
    """One call of any other tool. An MCP tool is named `mcp__<server>__<tool>`."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Native:
    """One plain function call in a namespace, also for models in code mode: Codex's own agents."""

    namespace: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Javascript:
    """A program for the JavaScript tool; only models in code mode have it."""

    code: str


@dataclass(frozen=True)
class Together:
    """Several steps' items in one answer: parallel tool calls, or a remark before a call."""

    steps: tuple[Action, ...]


@dataclass(frozen=True)
class Fail:
    """An HTTP error.

    It also answers the retries that Codex makes within the same turn: `times` of them in all, or each one
    when None. The next turn goes on with the next step.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int | None = None


@dataclass(frozen=True)
class FailStream:
    """An answer that begins well and then reports `response.failed`. Repeats like `Fail`."""

    code: str
    message: str
    times: int | None = None


@dataclass(frozen=True)
class Drop:
    """The connection is cut in the middle of the answer. Repeats like `Fail`."""

    times: int | None = None


@dataclass(frozen=True)
class Stall:
    """Silence until released (for ever when None), then the next step; ends when Codex hangs up."""

    until: threading.Event | None = None
    begin: bool = True
    """Whether the answer has begun (`response.created`) before the silence."""


@dataclass(frozen=True)
class Slow:
    """Another step's answer, `seconds` late."""

    seconds: float
    then: Action


@dataclass(frozen=True)
class Claiming:
    """Another step's answer, whose headers claim that `model` made it."""

    model: str
    then: Action


Action = (
    Say
    | Reason
    | Shell
    | Patch
    | Call
    | Native
    | Javascript
    | Together
    | Fail
    | FailStream
    | Drop
    | Stall
    | Slow
    | Claiming
)
Decide = Callable[[Request], "Step | Sequence[Step]"]
Step = Action | Decide


def say(message: str | Mapping[str, Any]) -> Say:
    """A final message; a mapping becomes its JSON text."""
    return Say(message if isinstance(message, str) else json.dumps(dict(message)))


def reason(summary: str, then: Action) -> Reason:
    """Think aloud, then do `then` in the same answer."""
    return Reason(summary, then)


def shell(command: str, workdir: str | None = None, **options: Any) -> Shell:
    """Run a shell command."""
    return Shell(command, workdir, options)


def patch(text: str) -> Patch:
    """Apply a patch. `text` may be the whole patch or only what stands between its begin and end lines."""
    body = text.strip("\n")
    if not body.startswith("*** Begin Patch"):
        body = f"*** Begin Patch\n{body}\n*** End Patch"
    return Patch(body + "\n")


apply_patch = patch


def add_file(path: str, content: str) -> Patch:
    """Make a new file through the patch tool."""
    return patch(f"*** Add File: {path}\n" + "\n".join("+" + line for line in content.splitlines()))


def call(tool: str, arguments: Mapping[str, Any] | None = None) -> Call:
    """Call a tool by its name."""
    return Call(tool, arguments or {})


def native(namespace: str, tool: str, arguments: Mapping[str, Any] | None = None) -> Native:
    """Call a tool of a namespace that Codex offers beside the JavaScript tool, such as `collaboration`."""
    return Native(namespace, tool, arguments or {})


def javascript(code: str) -> Javascript:
    """Run a program in the JavaScript tool."""
    return Javascript(code)


def together(*steps: Action) -> Together:
    """All these in one answer."""
    return Together(steps)


def slow(seconds: float, then: Action) -> Slow:
    """Answer `then` after `seconds`."""
    return Slow(seconds, then)


def stall(until: threading.Event | None = None, *, begin: bool = True) -> Stall:
    """Say nothing until the event is set."""
    return Stall(until, begin)


def drop_connection(times: int | None = None) -> Drop:
    """Cut the connection in the middle of the answer."""
    return Drop(times)


def claiming(model: str, then: Action) -> Claiming:
    """Answer `then` in the name of another model."""
    return Claiming(model, then)


def fail(
    status: int,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    *,
    times: int | None = None,
) -> Fail:
    """Answer with an HTTP error; `body` defaults to a plain error object."""
    fallback = {"error": {"message": f"simulated status {status}", "type": "simulated_error"}}
    return Fail(status, fallback if body is None else body, headers or {}, times)


def rate_limited(retry_after: float | None = None, *, times: int | None = None) -> Fail:
    """429; with `Retry-After` in seconds when given."""
    wait = f" Please try again in {retry_after:g}s." if retry_after is not None else ""
    error = {
        "type": "rate_limit_exceeded",
        "code": "rate_limit_exceeded",
        "message": f"Rate limit reached.{wait}",
    }
    return fail(
        429,
        {"error": error},
        {"Retry-After": f"{retry_after:g}"} if retry_after is not None else {},
        times=times,
    )


def usage_limit(resets_at: int | None = None) -> Fail:
    """The plan's limit is used up; `resets_at` in seconds since the epoch."""
    error: dict[str, Any] = {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
    }
    if resets_at is not None:
        error["resets_at"] = resets_at
    return fail(429, {"error": error})


def context_overflow() -> FailStream:
    """The input is longer than the model's context."""
    return FailStream("context_length_exceeded", "Your input exceeds the context window of this model.")


def overloaded() -> Fail:
    """503: the service has no capacity."""
    error = {"code": "server_is_overloaded", "type": "server_error", "message": "The server is overloaded."}
    return fail(503, {"error": error})


def unknown_model(name: str) -> Fail:
    """The service does not know the model."""
    message = f"The requested model '{name}' does not exist."
    error = {"message": message, "type": "invalid_request_error", "param": "model", "code": "model_not_found"}
    return fail(404, {"error": error})
