"""Codex: one turn of a thread that reads the repository, and only that, by its permission profile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from baton.codex.appserver import AppServer
from baton.codex.events import Notification
from baton.codex.faults import ThreadRefused
from baton.codex.home import Login
from baton.codex.profile import PermissionProfile, WorkerPlace, build_profile
from baton.codex.settings import ThreadSettings
from baton.codex.thread import WorkerThread, resume_thread, start_thread
from baton.codex.turn import Deadlines, TurnOutcome, TurnStatus
from baton.consult.adapters.output import failed, failure_of, structured_from, with_schema
from baton.consult.adapters.program import check_extra, find_program, prompt_bytes
from baton.consult.adapters.protocol import (
    Agent,
    CannotAsk,
    Places,
    Progress,
    Question,
    Reply,
    Runtime,
    Sees,
    Tell,
)
from baton.contract.catalogue import ModelEntry
from baton.contract.errors import CodexFailure, StateUnavailable
from baton.contract.nearest import did_you_mean
from baton.contract.reply import ReplyFailure
from baton.contract.scope import ScopePlan
from baton.engine.machine import Machine
from baton.process.environment import pick, worker_environment

LOGIN = "codex login"

START_SECONDS = 60.0

_FAILURES = {"start_timeout": ReplyFailure.IDLE_TIMEOUT, "run_timeout": ReplyFailure.TURN_TIMEOUT}


@dataclass(frozen=True)
class Codex:
    """Sees the repository: commands of its own read it, and can neither write nor reach the network."""

    runtime: Runtime = Runtime.CODEX
    sees: Sees = Sees.REPOSITORY
    web: bool = True

    async def converse(self, agent: Agent, question: Question, places: Places, tell: Tell) -> Reply:
        """Ask it; raises `CannotAsk` and `InvalidInput` before any model is asked."""
        check_extra(agent, {})
        prompt_bytes(question.prompt)
        if not question.session.may_read(question.cwd):
            raise CannotAsk(
                ReplyFailure.SCOPE_NOT_ENFORCED, f"the calling session may not read {question.cwd}"
            )
        machine = await _machine(agent, places)
        model, effort = _route(agent, await machine.catalogue(places.house))
        settings = _settings(model, effort, machine, question, places)
        web = question.web and agent.web_search
        try:
            server = await AppServer.start(
                machine.binary.path,
                machine.home.path,
                {
                    **pick(places.house.env, agent.env_names),
                    **machine.server_environment(places.house, None),
                },
                stderr=places.stderr,
                cwd=places.scratch,
                extra={"web_search": "live"} if web else None,
                disabled_servers=machine.home.foreign_servers,
            )
        except CodexFailure as fault:
            return Reply(failure=ReplyFailure.CRASH, detail=fault.message)
        async with server:
            tell(Progress("started", pid=server.pid))
            return await _ask(server, settings, agent, question, places, tell)


async def _machine(agent: Agent, places: Places) -> Machine:
    launcher = str(find_program(agent.command, places.house.env)) if agent.command else None
    machine = await Machine.open(places.house, launcher)
    if machine.home.login is Login.NONE:
        raise CannotAsk(ReplyFailure.AUTH, machine.home.why or "Codex is not logged in", LOGIN)
    if not machine.prevents:
        why = machine.why_detected or "the sandbox does not hold"
        raise CannotAsk(
            ReplyFailure.SCOPE_NOT_ENFORCED, f"Codex cannot be held to reading here: {why}; it was not asked"
        )
    return machine


def _route(agent: Agent, models: tuple[ModelEntry, ...]) -> tuple[str, str | None]:
    """Model and effort, checked: Codex itself sends on whatever it is given. Raises `CannotAsk`."""
    if agent.model is None:
        listed = [entry for entry in models if entry.listed] or list(models)
        entry = listed[0]
    else:
        found = [entry for entry in models if entry.slug == agent.model]
        if not found:
            slugs = [entry.slug for entry in models]
            advice = did_you_mean(agent.model, slugs, "`baton models` lists those it has")
            raise CannotAsk(ReplyFailure.UNKNOWN_MODEL, f"this Codex has no model {agent.model}; {advice}")
        entry = found[0]
    if agent.effort is not None and entry.efforts and agent.effort not in entry.efforts:
        raise CannotAsk(
            ReplyFailure.BAD_REQUEST,
            f"{entry.slug} has no effort {agent.effort}; it has {', '.join(entry.efforts)}",
        )
    return entry.slug, agent.effort


def _settings(
    model: str, effort: str | None, machine: Machine, question: Question, places: Places
) -> ThreadSettings:
    own = places.scratch / "codex"
    for folder in (own / "home", own / "tmp"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return ThreadSettings(
        cwd=question.cwd,
        model=model,
        effort=effort,
        profile=reading_profile(machine, question, places, own),
        environment=worker_environment(places.house.env, home=own / "home", tmpdir=own / "tmp"),
        ephemeral=not question.keep_session,
    )


def reading_profile(machine: Machine, question: Question, places: Places, own: Path) -> PermissionProfile:
    """Reads the folder of the question and what is listed beside it; writes to its own scratch alone."""
    visible = (question.cwd, *question.readable)
    where = WorkerPlace(
        worktree=question.cwd,
        cwd=question.cwd,
        workspace=question.cwd,
        scratch=(own,),
        binary=machine.binary.path,
        visible=visible,
    )
    denied = (*machine.home.secrets, places.house.codex_home)
    return build_profile(
        ScopePlan(visible=visible, hidden_paths=tuple(path for path in denied if path.exists())),
        where,
        session=question.session,
    )


async def _ask(
    server: AppServer,
    settings: ThreadSettings,
    agent: Agent,
    question: Question,
    places: Places,
    tell: Tell,
) -> Reply:
    try:
        if question.resume is not None:
            thread = await resume_thread(server, question.resume, settings, timeout=START_SECONDS)
        else:
            thread = await start_thread(server, settings, timeout=START_SECONDS)
    except ThreadRefused as refused:
        found = _class(refused.failure.failure_class.value)
        if found is ReplyFailure.OTHER:
            found = failure_of(refused.failure.message)
        return failed(Reply(), found, refused.failure.message)
    except CodexFailure as fault:
        return failed(Reply(), ReplyFailure.CRASH, fault.message)
    schema = question.answer_schema
    strict = schema is not None and is_strict(schema)
    with _raw(places.stdout, tell) as on_event:
        outcome = await thread.run_turn(
            question.prompt if strict else with_schema(question.prompt, schema),
            output_schema=schema if strict else None,
            deadlines=Deadlines(
                start=min(START_SECONDS, question.idle_seconds),
                idle=question.idle_seconds,
                turn=question.timeout_seconds,
            ),
            on_event=on_event,
        )
    return _reply(thread, outcome, agent, question)


def _reply(thread: WorkerThread, outcome: TurnOutcome, agent: Agent, question: Question) -> Reply:
    route = thread.route
    known = outcome.usage.total_tokens is not None
    reply = Reply(
        text=outcome.final_message,
        structured=structured_from(outcome.final_message) if question.answer_schema is not None else None,
        session_id=thread.id if question.keep_session or question.resume else None,
        model=route.server_claimed or route.model,
        attested=(route.server_claimed or route.model) is not None,
        usage=outcome.usage if known else None,
    )
    if outcome.failure is not None:
        found = _class(outcome.failure.failure_class.value)
        return replace(
            failed(replace(reply, text=None, structured=None), found, outcome.failure.message),
            retry_after=outcome.failure.retry_after_seconds,
            required_action=LOGIN if found is ReplyFailure.AUTH else None,
        )
    if outcome.status is not TurnStatus.COMPLETED:
        return failed(reply, ReplyFailure.OTHER, f"the turn ended as {outcome.status.value}")
    if reply.text is None or not reply.text.strip():
        return failed(replace(reply, text=None), ReplyFailure.NO_ANSWER, "Codex ended without an answer")
    claimed = route.server_claimed
    if route.deviates or (claimed is not None and claimed != route.asked_model):
        return failed(
            reply,
            ReplyFailure.ROUTE_MISMATCH,
            f"{reply.model} answered, not {route.asked_model} that was asked for; the answer is kept",
        )
    return reply


def _class(name: str) -> ReplyFailure:
    return _FAILURES.get(name) or ReplyFailure(name)


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether the service takes the schema as it is: every object closed, every property required.

    Any other schema goes into the prompt.
    """
    if any(key in schema for key in ("$ref", "$defs", "allOf", "oneOf", "not", "if", "patternProperties")):
        return False
    properties = schema.get("properties")
    if schema.get("type") == "object" or properties is not None:
        if not isinstance(properties, Mapping) or schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required") or ()) != set(properties):
            return False
    parts = [*(properties or {}).values(), *(schema.get("anyOf") or ())]
    items = schema.get("items")
    parts += [items] if isinstance(items, Mapping) else []
    return all(isinstance(part, Mapping) and is_strict(part) for part in parts)


@contextmanager
def _raw(path: Path, tell: Tell) -> Iterator[Any]:
    """Keeps every event as a line of the raw output, as it comes."""
    lines = 0

    def keep(event: Notification) -> None:
        nonlocal lines
        lines += 1
        line = json.dumps({"method": event.method, "params": event.params}, ensure_ascii=False)
        try:
            file.write(line.encode("utf-8", "replace") + b"\n")
        except OSError as error:
            raise StateUnavailable(f"the output of Codex cannot be kept: {error.strerror}") from error
        tell(Progress("line", lines=lines))

    with _private(path) as file:
        yield keep


def _private(path: Path) -> IO[bytes]:
    path.touch(mode=0o600)
    return path.open("wb", buffering=0)
