"""Attempts as threads of shared app-servers: the effective route is known, and a cut thread goes on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field

import anyio

from baton.codex.appserver import AppServer
from baton.codex.events import Notification
from baton.codex.faults import ThreadRefused
from baton.codex.thread import WorkerThread, resume_thread, start_thread
from baton.codex.turn import TurnOutcome, TurnStatus
from baton.contract.errors import BatonError, CodexFailure
from baton.contract.evidence import TurnFailure
from baton.contract.states import FailureClass
from baton.engine.blocking import blocking
from baton.engine.quiet import quiet
from baton.engine.servers import Servers
from baton.pool.backend import Assignment, AttemptOutcome
from baton.pool.boundary import JobBoundary, bound
from baton.pool.context import PoolContext
from baton.pool.log import EventLog

INTERRUPT_INTERVAL = 0.1
"""Seconds between two requests to end a turn that has not been given its id yet."""

THREADS_PER_LIFE = 200
"""Threads that one app-server serves before another one takes over; it keeps something of each."""


class AppServerBackend:
    """See `Backend`."""

    name = "app-server"
    jitter_seconds = 0.2
    warms_up = True

    def __init__(self, ctx: PoolContext, *, start_seconds: float) -> None:
        self._ctx = ctx
        self._start_seconds = start_seconds
        most = ctx.house.policy(ctx.scratch).concurrency.max_threads_per_server
        self._servers = Servers(self._start_server, most, retire_after=THREADS_PER_LIFE)

    async def start(self) -> None:
        """Start the first app-server. That it cannot be started is told by the first attempt."""
        await self._servers.warm()

    async def run(self, assignment: Assignment) -> AttemptOutcome:
        """Carry out one attempt in a thread of its own."""
        work = _Work(assignment)
        try:
            boundary = await blocking(bound, self._ctx, assignment.job, assignment.scratch)
            work.notices += boundary.notices
            async with self._servers.one() as server:
                await self._converse(work, server, boundary)
        except ThreadRefused as refused:
            work.failure = refused.failure
        except CodexFailure as broken:
            work.failure = TurnFailure(failure_class=FailureClass.CRASH, message=broken.message)
        except BatonError as refused:
            work.failure = TurnFailure(failure_class=FailureClass.BAD_REQUEST, message=refused.message)
        finally:
            with anyio.CancelScope(shield=True):
                await blocking(shutil.rmtree, assignment.scratch, ignore_errors=True)
        return work.outcome()

    async def close(self) -> None:
        """End all app-servers."""
        await self._servers.close()

    async def _start_server(self) -> AppServer:
        return await self._ctx.start_server(self._start_seconds)

    async def _converse(self, work: _Work, server: AppServer, boundary: JobBoundary) -> None:
        thread = await self._open(work, server, boundary)
        work.thread = thread
        try:
            work.assignment.on_thread(thread.id)
            with EventLog(work.assignment.log) as log:
                await self._turn(work, thread, log)
            if log.fault is not None:
                work.notices.append(log.fault)
        finally:
            with anyio.CancelScope(shield=True):
                notice = await quiet(server, thread)
        if notice is not None:
            work.notices.append(notice)

    async def _open(self, work: _Work, server: AppServer, boundary: JobBoundary) -> WorkerThread:
        seconds, settings = work.assignment.deadlines.start, boundary.settings
        if work.assignment.thread_id is not None:
            try:
                thread = await resume_thread(server, work.assignment.thread_id, settings, timeout=seconds)
            except ThreadRefused:
                # One that was cut before its first answer has left nothing to go on with.
                pass
            else:
                work.resumed = True
                return thread
        return await start_thread(server, settings, timeout=seconds)

    async def _turn(self, work: _Work, thread: WorkerThread, log: EventLog) -> None:
        assignment = work.assignment
        if assignment.halt.is_set():
            work.halted = True
            return

        def on_event(event: Notification) -> None:
            log.event(event.method, event.params)
            if _is_answer(event):
                assignment.on_answer()

        work.began = True
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_interrupt, work, thread)
            work.turn = await thread.run_turn(
                assignment.resume_text if work.resumed else assignment.text,
                output_schema=assignment.job.output_schema,
                deadlines=assignment.deadlines,
                on_event=on_event,
            )
            tasks.cancel_scope.cancel()


@dataclass
class _Work:
    """What is known of an attempt while it goes on."""

    assignment: Assignment
    began: bool = False
    resumed: bool = False
    halted: bool = False
    thread: WorkerThread | None = None
    turn: TurnOutcome | None = None
    failure: TurnFailure | None = None
    notices: list[str] = field(default_factory=list)

    def outcome(self) -> AttemptOutcome:
        turn, failure = self.turn, self.failure
        if turn is not None and failure is None:
            failure = turn.failure
        completed = turn is not None and turn.status is TurnStatus.COMPLETED and failure is None
        route = None if self.thread is None else self.thread.route
        if failure is None and completed and route is not None and route.deviates:
            failure = TurnFailure(
                failure_class=FailureClass.ROUTE_MISMATCH,
                message=f"it ran on {route.server_claimed or route.model} at effort {route.effort}"
                f" instead of {route.asked_model} at {route.asked_effort}",
            )
        return AttemptOutcome(
            completed=completed and failure is None,
            began=self.began,
            interrupted=self.halted and not completed,
            resumed=self.resumed,
            message=None if turn is None else turn.final_message,
            thread_id=None if self.thread is None else self.thread.id,
            usage=turn.usage if turn is not None else AttemptOutcome().usage,
            failure=failure,
            route=route,
            attested=route is not None and route.model is not None,
            notices=(*self.notices, *(turn.notices if turn is not None else ())),
        )


async def _interrupt(work: _Work, thread: WorkerThread) -> None:
    await work.assignment.halt.wait()
    work.halted = True
    while not await thread.interrupt():
        await anyio.sleep(INTERRUPT_INTERVAL)


def _is_answer(event: Notification) -> bool:
    """Whether the event can only come from a model that answers."""
    if event.method == "thread/tokenUsage/updated":
        return True
    item = event.params.get("item")
    return event.method.startswith("item/") and isinstance(item, dict) and item.get("type") != "userMessage"
