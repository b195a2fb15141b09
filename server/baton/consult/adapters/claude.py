"""Claude Code: one `claude -p` without any tool that reads, writes or runs, its events as lines of JSON."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from baton.consult.adapters.output import (
    ended_badly,
    events,
    failed,
    failure_of,
    killed,
    last_line,
    money,
    number,
    one_line,
    structured_from,
    table,
    tables,
    text_of,
    usage,
)
from baton.consult.adapters.program import empty_room, program_of, prompt_bytes, version_of
from baton.consult.adapters.protocol import (
    Agent,
    CannotAsk,
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

LOGIN = "claude auth login"

NAMES = ("ANTHROPIC_*", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_*", "AWS_*",
         "CLOUD_ML_REGION", "GOOGLE_APPLICATION_CREDENTIALS", "VERTEX_REGION_*")  # fmt: skip
"""How the person's Claude Code reaches its service, where they set it by variables."""

ALWAYS = ("--setting-sources", "--strict-mcp-config", "--tools", "--permission-mode", "--json-schema")
"""Without these it cannot be held to the question."""

MAX_SCHEMA = 100_000
"""Bytes: the schema is an argument, and one argument is bounded by the system (128 KiB on Linux)."""

MAX_TURNS = 12
"""Requests of one question: a search of the web is one, and so is each try at the shape of the answer."""


@dataclass(frozen=True)
class Claude:
    """Sees only the question: its working folder is empty and it has no tool to read with."""

    runtime: Runtime = Runtime.CLAUDE
    sees: Sees = Sees.GIVEN
    web: bool = True

    def prepare(self, agent: Agent, question: Question, places: Places) -> Invocation:
        program = program_of(
            agent,
            places.house,
            "claude",
            known={"max_turns": int},
            names=NAMES,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            CLAUDE_CODE_MAX_RETRIES="1",
            DISABLE_AUTOUPDATER="1",
            API_TIMEOUT_MS=_milliseconds(question.idle_seconds),
            CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS=_milliseconds(question.idle_seconds),
        )
        known = version_of(program.path, places.house, program.env, "--help")
        missing = [option for option in ALWAYS if option not in known]
        if missing:
            raise CannotAsk(
                ReplyFailure.SCOPE_NOT_ENFORCED,
                f"this Claude Code has no {missing[0]} and cannot be contained: run claude update",
            )
        web = question.web and agent.web_search
        argv = [
            *("-p", "--output-format", "stream-json", "--verbose"),
            *("--strict-mcp-config", "--setting-sources", ""),
            *("--tools", "WebSearch" if web else "", "--permission-mode", "dontAsk"),
            *(("--allowedTools", "WebSearch") if web else ()),
            # Newer ones have these too; they shut the same doors a second time.
            *(("--restricted",) if "--restricted" in known else ()),
            *(("--permission-prompts", "none") if "--permission-prompts" in known else ()),
            *(("--disable-slash-commands",) if "--disable-slash-commands" in known else ()),
            *("--max-turns", str(program.extra.get("max_turns", MAX_TURNS))),
            *(("--model", agent.model) if agent.model else ()),
            *(("--effort", agent.effort) if agent.effort else ()),
            *_schema(question),
            *(("--max-budget-usd", f"{question.max_cost:.4f}") if question.max_cost is not None else ()),
            *_session(question),
        ]
        return program.asked(argv, empty_room(places.house, self.runtime), prompt_bytes(question.prompt))

    def watcher(self) -> Watcher:
        return _watch

    def read(self, agent: Agent, question: Question, places: Places, ended: Exit) -> Reply:
        heard = _Heard()
        for event in events(places.stdout):
            heard.take(event)
        reply = heard.reply(agent, question)
        if ended.kill is not None:
            return killed(reply, ended)
        if heard.result is not None:
            return reply
        return ended_badly(reply, ended, places.stderr, last_line(places.stderr))


def _watch(line: bytes) -> Kill | None:
    return None  # it ends by itself; deadlines hold what does not


def _milliseconds(seconds: float) -> str:
    return str(max(1000, int(seconds * 1000)))


def _schema(question: Question) -> tuple[str, ...]:
    if question.answer_schema is None:
        return ()
    text = json.dumps(question.answer_schema, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > MAX_SCHEMA:
        raise InvalidInput(f"the answer schema is longer than {MAX_SCHEMA} bytes")
    return ("--json-schema", text)


def _session(question: Question) -> tuple[str, ...]:
    if question.resume is not None:
        try:
            return ("--resume", str(uuid.UUID(question.resume)))
        except ValueError:
            raise InvalidInput(f"{question.resume!r} is no conversation of Claude Code") from None
    return ("--session-id", str(uuid.uuid4())) if question.keep_session else ("--no-session-persistence",)


@dataclass
class _Heard:
    """What the events told so far."""

    session: str | None = None
    model: str | None = None
    blocked_until: float | None = None
    stop: str | None = None
    spoken: str | None = None
    """The latest text of the model, also of an answer that was cut."""
    result: Mapping[str, Any] | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        self.session = text_of(event.get("session_id")) or self.session
        match event.get("type"):
            case "assistant":
                message = table(event, "message")
                # What it makes up itself, such as the text of an error, is marked so.
                if message.get("model") != "<synthetic>":
                    self.model = text_of(message.get("model")) or self.model
                    self.stop = text_of(message.get("stop_reason")) or self.stop
                    said = [text_of(block.get("text")) for block in tables(message.get("content"))]
                    self.spoken = "\n".join(text for text in said if text) or self.spoken
            case "rate_limit_event":
                info = table(event, "rate_limit_info")
                resets = number(info.get("resetsAt"))
                if info.get("status") == "rejected" and resets is not None:
                    self.blocked_until = float(resets)
            case "result":
                self.result = event

    def reply(self, agent: Agent, question: Question) -> Reply:
        result = self.result or {}
        structured = result.get("structured_output")
        reply = Reply(
            text=text_of(result.get("result")),
            structured=structured if question.answer_schema is not None else None,
            session_id=self.session if question.keep_session or question.resume else None,
            model=self.model,
            attested=self.model is not None,
            usage=_usage(result),
            cost=None if _usage(result) is None else _cost(result, resumed=question.resume is not None),
        )
        if self.result is None:
            return reply
        if result.get("is_error") is not False or result.get("subtype") != "success":
            return self._failure(reply, result)
        if question.answer_schema is not None and structured is None:
            # The text may hold it all the same; whoever validates decides.
            reply = replace(reply, structured=structured_from(reply.text))
        if reply.text is None and structured is None:
            return failed(reply, ReplyFailure.NO_ANSWER, "Claude Code ended without an answer")
        if agent.model and self.model and not same_model(agent.model, self.model):
            return failed(
                reply,
                ReplyFailure.ROUTE_MISMATCH,
                f"{self.model} answered, not {agent.model} that was asked for; the answer is kept",
            )
        return reply

    def _failure(self, reply: Reply, result: Mapping[str, Any]) -> Reply:
        said = [item for item in result.get("errors") or () if isinstance(item, str)]
        text = one_line(" ".join((reply.text or "", *said))) or str(result.get("subtype"))
        match result.get("subtype"):
            case "error_max_turns":
                found = ReplyFailure.LOOP
            case "error_max_budget_usd":
                found = ReplyFailure.USAGE_LIMIT
            case "error_max_structured_output_retries":
                found = ReplyFailure.BAD_ANSWER
            case _ if result.get("stop_reason") == "refusal" or self.stop == "refusal":
                found = ReplyFailure.REFUSED
            case _ if result.get("stop_reason") == "max_tokens" or self.stop == "max_tokens":
                found = ReplyFailure.CUT
            case _:
                found = failure_of(text, number(result.get("api_error_status")))
        if self.blocked_until is not None:
            found = ReplyFailure.USAGE_LIMIT
        wait = None if self.blocked_until is None else max(0.0, self.blocked_until - time.time())
        # In place of the answer stands the message of the error: what the model said is told only where
        # it was paid for and may be of use.
        keep = found in (ReplyFailure.CUT, ReplyFailure.BAD_ANSWER)
        return replace(
            reply,
            text=self.spoken if keep else None,
            structured=None,
            failure=found,
            detail=text,
            retry_after=wait,
            required_action=LOGIN if found is ReplyFailure.AUTH else None,
        )


def same_model(asked: str, answered: str) -> bool:
    """Whether the model that answered is the one asked for, under whatever name a service gives it.

    Dates of snapshots and what services put around a name do not make another model. A word without a version
    is an alias of the command line, such as `sonnet`, and stands for its whole family.
    """
    wanted, told = _plain(asked), _plain(answered)
    if "-" not in wanted:
        return wanted in ("default", "best", "opusplan") or wanted in told.split("-")
    return wanted == told


def _plain(name: str) -> str:
    """A model's name without provider, context size, date and revision."""
    name = name.lower().rsplit("/", 1)[-1].removesuffix("[1m]")
    name = re.sub(r"^(?:[a-z]+\.)?anthropic\.", "", name)
    return re.sub(r"(?:-v\d+(?::\d+)?|[-@]20\d{6}|-latest|@default)+$", "", name)


def _usage(result: Mapping[str, Any]) -> Usage | None:
    told = table(result, "usage")
    return usage(
        number(told.get("input_tokens")),
        number(told.get("cache_read_input_tokens")),
        number(told.get("cache_creation_input_tokens")),
        number(told.get("output_tokens")),
    )


def _cost(result: Mapping[str, Any], *, resumed: bool) -> float | None:
    """Of this question alone: when a conversation goes on, the total is that of the whole conversation."""
    since = result.get("model_usage_since_last_result")
    if isinstance(since, Mapping):
        costs = [money(table(part).get("costUSD")) for part in since.values()]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None
    return None if resumed else money(result.get("total_cost_usd"))
