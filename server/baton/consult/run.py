"""One question put to one agent: started under the guard, bounded in time and output, its raw words kept."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path

import anyio

from baton.consult.adapters.protocol import (
    MAX_OUTPUT,
    MAX_TEXT,
    Adapter,
    Agent,
    CannotAsk,
    ConversingAdapter,
    Exit,
    Invocation,
    Kill,
    Places,
    ProgramAdapter,
    Progress,
    Question,
    Reply,
    Tell,
    Watcher,
)
from baton.contract import json_schema
from baton.contract.errors import InvalidInput, StateUnavailable, Unsupported
from baton.contract.reply import ReplyFailure
from baton.engine.blocking import blocking
from baton.process.child import Child, open_child

LOOK_SECONDS = 0.25
"""How often deadlines are looked at."""

GRACE_SECONDS = 1.0
"""What a program has between being asked to end and being ended."""

DRAIN_SECONDS = 2.0


async def ask(
    adapter: Adapter, agent: Agent, question: Question, places: Places, tell: Tell = lambda progress: None
) -> Reply:
    """Put the question and wait for the end, at most as long as the question allows.

    Whatever happens to the program is part of the reply. When the caller is cancelled or killed, the whole
    tree of the program is ended; its raw output up to then stays in `places`. Raises `StateUnavailable` when
    that output cannot be written.
    """
    fault = schema_fault(question)
    if fault is not None:
        return Reply(failure=ReplyFailure.BAD_REQUEST, detail=fault)
    try:
        if isinstance(adapter, ConversingAdapter):
            reply = await adapter.converse(agent, question, places, tell)
        else:
            assert isinstance(adapter, ProgramAdapter)
            reply = await _run(adapter, agent, question, places, tell)
    except CannotAsk as refused:
        return Reply(failure=refused.failure, detail=refused.message, required_action=refused.required_action)
    except InvalidInput as refused:
        return Reply(failure=ReplyFailure.BAD_REQUEST, detail=refused.message)
    except Unsupported as refused:
        return Reply(failure=ReplyFailure.NOT_INSTALLED, detail=refused.message)
    return _cut(checked(reply, question), places)


def schema_fault(question: Question) -> str | None:
    """Why the answer's schema is none; None when there is none or it is sound."""
    if question.answer_schema is None:
        return None
    fault = json_schema.schema_fault(question.answer_schema)
    return None if fault is None else f"the answer schema is not valid: {fault}"


def checked(reply: Reply, question: Question) -> Reply:
    """The reply with its structured answer held against the schema."""
    if question.answer_schema is None or reply.failure is not None:
        return reply
    if reply.structured is None:
        why = "the answer holds no JSON of the shape that was asked for"
    else:
        fault = json_schema.value_fault(reply.structured, question.answer_schema)
        if fault is None:
            return reply
        why = f"the answer does not satisfy the schema: {fault}"
    return _with(reply, ReplyFailure.BAD_ANSWER, why)


def _cut(reply: Reply, places: Places) -> Reply:
    if reply.text is None or len(reply.text) <= MAX_TEXT:
        return reply
    detail = f"{reply.detail}; " if reply.detail else ""
    detail += f"the answer is cut here after {MAX_TEXT} characters; the whole is in {places.stdout.name}"
    return replace(reply, text=reply.text[:MAX_TEXT], detail=detail)


def _with(reply: Reply, failure: ReplyFailure, detail: str) -> Reply:
    return replace(reply, failure=failure, detail=detail)


async def _run(
    adapter: ProgramAdapter, agent: Agent, question: Question, places: Places, tell: Tell
) -> Reply:
    invocation = await blocking(adapter.prepare, agent, question, places)
    try:
        raw = os.open(places.stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise StateUnavailable(f"{places.stdout} cannot be written: {error.strerror}") from error
    with os.fdopen(raw, "wb", buffering=0) as output:
        try:
            child = await open_child(
                invocation.argv,
                cwd=invocation.cwd,
                env=invocation.env,
                stderr=places.stderr,
                grace=GRACE_SECONDS,
            )
        except OSError as error:
            return Reply(
                failure=ReplyFailure.NOT_INSTALLED,
                detail=f"{invocation.argv[0]} cannot be started: {error.strerror}",
            )
        async with child:
            tell(Progress("started", pid=child.pid))
            session = _Session(child, question, adapter.watcher(), output.fileno(), places, tell)
            ended = await session.until_end(invocation)
    reply = await blocking(adapter.read, agent, question, places, ended)
    if ended.kill is not None and reply.failure is None:
        reply = _with(reply, ended.kill.failure, ended.kill.detail)
    return reply


class _Session:
    """A running program: fed, read, watched, and ended in time."""

    def __init__(
        self, child: Child, question: Question, watcher: Watcher, output: int, places: Places, tell: Tell
    ) -> None:
        self._child = child
        self._question = question
        self._watcher = watcher
        self._output = output
        self._stderr = places.stderr
        self._tell = tell
        self._rest: list[bytes] = []
        self._size = 0
        self._lines = 0
        self._kill: Kill | None = None
        self._fault: OSError | None = None
        self._last = anyio.current_time()

    async def until_end(self, invocation: Invocation) -> Exit:
        drained = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._feed, invocation.stdin)
            tasks.start_soon(self._collect, drained)
            tasks.start_soon(self._clock)
            ended = await self._child.wait()
            with anyio.move_on_after(DRAIN_SECONDS):
                await drained.wait()
            tasks.cancel_scope.cancel()
        if self._fault is not None:
            raise StateUnavailable(
                f"the output of {invocation.argv[0]} cannot be kept: {self._fault.strerror}"
            )
        return Exit(code=ended.exit_code, signal=ended.signal, kill=self._kill)

    async def _feed(self, data: bytes) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._child.stdin.send(data)
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._child.stdin.aclose()

    async def _collect(self, drained: anyio.Event) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in self._child.stdout:
                self._last = anyio.current_time()
                # What comes after the end was decided is read and dropped, so that nothing blocks.
                if self._kill is None and self._fault is None:
                    self._take(chunk)
        drained.set()

    def _take(self, chunk: bytes) -> None:
        fits = chunk[: MAX_OUTPUT - self._size]
        self._size += len(fits)
        try:
            rest = memoryview(fits)
            while rest:
                rest = rest[os.write(self._output, rest) :]
        except OSError as error:
            self._fault = error
            self._child.guarded.let_go()
            return
        *whole, tail = fits.split(b"\n")
        for line in whole:
            self._look(b"".join((*self._rest, line)))
            self._rest.clear()
        if tail:
            self._rest.append(tail)
        if len(fits) < len(chunk):
            self._end(Kill(ReplyFailure.TOO_MUCH, f"it wrote more than {MAX_OUTPUT} bytes and was ended"))

    def _look(self, line: bytes) -> None:
        self._lines += 1
        self._tell(Progress("line", lines=self._lines))
        kill = self._watcher(line) if self._kill is None else None
        if kill is not None:
            self._end(kill)

    def _end(self, kill: Kill) -> None:
        self._kill = self._kill or kill
        self._child.guarded.let_go()

    async def _clock(self) -> None:
        begun = anyio.current_time()
        wall, idle = self._question.timeout_seconds, self._question.idle_seconds
        while self._kill is None:
            await anyio.sleep(LOOK_SECONDS)
            now = anyio.current_time()
            if now - begun >= wall:
                self._end(Kill(ReplyFailure.TURN_TIMEOUT, f"not done within {wall:g} s; it was ended"))
            elif now - self._last >= idle:
                self._end(Kill(ReplyFailure.IDLE_TIMEOUT, f"no output for {idle:g} s; it was ended"))
            elif _size(self._stderr) > MAX_OUTPUT:
                self._end(Kill(ReplyFailure.TOO_MUCH, f"it wrote more than {MAX_OUTPUT} bytes of errors"))
        # Asked to end; if the guard itself is stuck, its tree is taken from it.
        await self._child.end()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
