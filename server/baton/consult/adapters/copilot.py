"""GitHub Copilot: one run without any tool, in a home of its own, its events as lines of JSON."""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from baton.consult.adapters.output import (
    ended_badly,
    events,
    failed,
    failure_of,
    killed,
    number,
    one_line,
    structured_from,
    table,
    tail,
    text_of,
    wait_of,
    with_schema,
)
from baton.consult.adapters.program import (
    empty_room,
    own_folder,
    program_of,
    prompt_bytes,
)
from baton.consult.adapters.protocol import (
    Agent,
    Exit,
    Invocation,
    Kill,
    Places,
    Question,
    Reply,
    Runtime,
    Sees,
    Watcher,
)
from baton.contract.errors import InvalidInput
from baton.contract.evidence import Usage
from baton.contract.reply import ReplyFailure
from baton.engine.house import House

NAMES = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "COPILOT_PROVIDER_*", "COPILOT_MODEL",
         "COPILOT_OFFLINE")  # fmt: skip
"""How the person's Copilot reaches its service, where they set it by variables. Never `COPILOT_ALLOW_ALL`."""

NO_TOOLS = "none"
"""Names no tool, so that there is none; an empty list would filter nothing."""

MAX_TURNS = 40
"""Answers of the model in one question; it has no limit of its own."""

BLOCKED = "The model returned no content because the response was blocked by content filtering."
"""What it gives as the answer when a content filter ended it."""

CUT_TURNS = 2
"""Without a tool, turns end without a message only when the answer was cut and is asked for again. After so
many it gives out the cut text as if all were well."""

_COUNTS = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens", "reasoningTokens")


@dataclass(frozen=True)
class Copilot:
    """Sees only the question: its folder is empty and it has no tool."""

    runtime: Runtime = Runtime.COPILOT
    sees: Sees = Sees.GIVEN
    web: bool = False

    def prepare(self, agent: Agent, question: Question, places: Places) -> Invocation:
        home = own_home(places.house)
        program = program_of(
            agent,
            places.house,
            "copilot",
            names=NAMES,
            COPILOT_HOME=str(home),
            COPILOT_AUTO_UPDATE="false",
        )
        if question.web and agent.web_search:
            raise InvalidInput(f"agents.{agent.id}.web_search: Copilot cannot be given the web alone")
        if question.resume is not None:
            session = f"--resume={_session(question.resume)}"
            _keep_former(home, question.resume, places)
        else:
            session = f"--session-id={uuid.uuid4()}"
        argv = [
            *("--output-format", "json", "--stream", "off"),
            *(f"--available-tools={NO_TOOLS}", "--disallow-temp-dir", "--no-custom-instructions"),
            *("--disable-builtin-mcps", "--no-ask-user", "--no-auto-update", "--no-remote"),
            *("--no-remote-export", "--log-level", "none"),
            *("--usage-output-file", str(places.scratch / "usage.json")),
            *(("--model", agent.model) if agent.model else ()),
            *(("--reasoning-effort", agent.effort) if agent.effort else ()),
            session,
        ]
        prompt = with_schema(question.prompt, question.answer_schema)
        native = replace(program, path=native_program(program.path))
        return native.asked(argv, empty_room(places.house, self.runtime), prompt_bytes(prompt))

    def watcher(self) -> Watcher:
        return _Watch().look

    def read(self, agent: Agent, question: Question, places: Places, ended: Exit) -> Reply:
        heard = _Heard()
        for event in events(places.stdout):
            heard.take(event)
        home = own_home(places.house)
        reply = heard.reply(agent, question, _spent(home, heard.session, question, places))
        if not question.keep_session and heard.session is not None:
            shutil.rmtree(home / "session-state" / _session(heard.session), ignore_errors=True)
        if ended.kill is not None:
            return killed(reply, ended)
        if heard.error is not None and heard.exit_code != 0:
            return _service_failure(reply, heard.error, home)
        if heard.exit_code != 0 or ended.code != 0:
            badly = ended_badly(replace(reply, text=None), ended, places.stderr, tail(places.stderr))
            return replace(badly, required_action=_action(badly.failure, home))
        if reply.text is None:
            return failed(reply, ReplyFailure.NO_ANSWER, "Copilot ended without an answer")
        if reply.text.startswith(BLOCKED):
            return failed(replace(reply, text=None), ReplyFailure.REFUSED, reply.text)
        if heard.silent_turns >= CUT_TURNS:
            return failed(reply, ReplyFailure.CUT, "the answer ended at the model's limit of length")
        return reply


def own_home(house: House) -> Path:
    """The home of the Copilot that is asked: neither hooks nor servers of the person's, and its own login."""
    return own_folder(house, Runtime.COPILOT, "home")


def login_command(home: Path) -> str:
    """The exact command that logs in the Copilot that is asked."""
    return f"COPILOT_HOME={shlex.quote(str(home))} copilot login"


def native_program(program: Path) -> Path:
    """The native program behind npm's loader: a signal to the loader would leave it running.

    The loader itself when there is none; the guard then ends both.
    """
    real = Path(os.path.realpath(program))
    if real.suffix != ".js":
        return program
    system = {"darwin": "darwin", "win32": "win32"}.get(sys.platform, "linux")
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), "arm64")
    package = f"copilot-{system}-{machine}"
    for folder in (real.parent.parent, real.parent / "node_modules" / "@github"):
        native = folder / package / "copilot"
        if os.access(native, os.X_OK):
            return native
    return program


def _action(found: ReplyFailure | None, home: Path) -> str | None:
    return login_command(home) if found is ReplyFailure.AUTH else None


def _session(named: str) -> str:
    try:
        return str(uuid.UUID(named))
    except ValueError:
        raise InvalidInput(f"{named!r} is no conversation of Copilot") from None


class _Watch:
    """Counts the answers of the model: nothing else bounds them."""

    def __init__(self) -> None:
        self._turns = 0

    def look(self, line: bytes) -> Kill | None:
        self._turns += b'"assistant.turn_start"' in line
        if self._turns > MAX_TURNS:
            return Kill(ReplyFailure.LOOP, f"no answer within {MAX_TURNS} turns; it was ended")
        return None


@dataclass
class _Heard:
    """What the events told so far."""

    session: str | None = None
    model: str | None = None
    text: str | None = None
    spoke: bool = False
    silent_turns: int = 0
    exit_code: int | None = None
    error: Mapping[str, Any] | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        data = table(event, "data")
        match event.get("type"):
            case "session.start":
                self.session = text_of(data.get("sessionId")) or self.session
            case "assistant.turn_start":
                self.spoke = False
            case "assistant.turn_end":
                self.silent_turns += not self.spoke
            case "assistant.message":
                self.spoke = True
                self.model = text_of(data.get("model")) or self.model
                # A message that calls a tool is no answer yet.
                self.text = None if data.get("toolRequests") else text_of(data.get("content"))
            case "session.error":
                self.error = data
            case "result":
                self.session = text_of(event.get("sessionId")) or self.session
                code = event.get("exitCode")
                self.exit_code = code if isinstance(code, int) else None

    def reply(self, agent: Agent, question: Question, spent: Usage | None) -> Reply:
        return Reply(
            text=self.text,
            structured=structured_from(self.text) if question.answer_schema is not None else None,
            session_id=self.session if question.keep_session or question.resume else None,
            # It tells the model that it asked for, whatever answered.
            model=self.model or agent.model,
            attested=False,
            usage=spent,
        )


def _service_failure(reply: Reply, error: Mapping[str, Any], home: Path) -> Reply:
    message = one_line(str(error.get("message") or error.get("errorType") or "Copilot failed"))
    status = number(error.get("statusCode"))
    match error.get("errorType"):
        case "authentication":
            found = ReplyFailure.AUTH
        case "rate_limit":
            found = failure_of(message, status or 429)
        case _:
            found = failure_of(message, status)
    return replace(
        reply,
        text=None,
        structured=None,
        failure=found,
        detail=message,
        retry_after=wait_of(message),
        # A key of the person's own provider is not mended by a login.
        required_action=None if "with provider at" in message else _action(found, home),
    )


def _keep_former(home: Path, session: str, places: Places) -> None:
    """Put beside the question what its conversation had spent before: Copilot tells only running totals."""
    former = _totals_file(home, _session(session))
    if former.exists():
        shutil.copyfile(former, places.scratch / "usage-before.json")


def _totals_file(home: Path, session: str) -> Path:
    return home / "usage" / f"{session}.json"


def _spent(home: Path, session: str | None, question: Question, places: Places) -> Usage | None:
    """Tokens of this question alone; None when its conversation's former totals are not known."""
    now = _totals(places.scratch / "usage.json")
    if now is None:
        return None
    if question.keep_session and session is not None:
        file = _totals_file(home, _session(session))
        file.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(places.scratch / "usage.json", file)
    if question.resume is None:
        before: Mapping[str, int] | None = dict.fromkeys(_COUNTS, 0)
    else:
        before = _totals(places.scratch / "usage-before.json")
    if before is None:
        return None
    spent = {name: now[name] - before.get(name, 0) for name in now}
    if any(value < 0 for value in spent.values()):
        return None
    told, made = spent.get("inputTokens"), spent.get("outputTokens")
    if not told and not made:
        return None
    # Its input already holds what came from the cache, its output the reasoning.
    return Usage(
        input_tokens=told,
        cached_input_tokens=spent.get("cacheReadTokens"),
        output_tokens=made,
        reasoning_output_tokens=spent.get("reasoningTokens"),
        total_tokens=None if told is None or made is None else told + made,
    )


def _totals(file: Path) -> dict[str, int] | None:
    """The sums over all models in a file of Copilot's; None when it holds none."""
    try:
        data = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    sums: dict[str, int] = {}
    for metrics in table(data, "modelMetrics").values():
        told = table(metrics, "usage")
        for name in _COUNTS:
            value = number(told.get(name))
            if value is not None:
                sums[name] = sums.get(name, 0) + value
    return sums or None
