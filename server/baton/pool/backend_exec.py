"""Attempts as processes, `codex exec --json`: the route is only requested, all else is held as well."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import anyio

from baton.codex.bubblewrap import with_bubblewrap
from baton.codex.exec import ExecRecord, exec_argv
from baton.codex.lines import read_object
from baton.contract.errors import BatonError
from baton.contract.evidence import Route, TurnFailure
from baton.contract.states import FailureClass
from baton.engine.blocking import blocking
from baton.pool.backend import Assignment, AttemptOutcome
from baton.pool.boundary import JobBoundary, bound
from baton.pool.context import PoolContext
from baton.pool.log import EventLog
from baton.process.child import Child, open_child, read_lines
from baton.process.guarded import Ended

LOOK_SECONDS = 0.5
"""How often the deadlines of a process are looked at."""

STDERR_SHOWN = 2000
"""Bytes of the end of a process's error output that a failure shows."""


class ExecBackend:
    """See `Backend`. Errors of a process are beside its log, in a file that ends in `.stderr`."""

    name = "exec"
    jitter_seconds = 0.5
    warms_up = True

    def __init__(self, ctx: PoolContext) -> None:
        self._ctx = ctx

    async def start(self) -> None:
        """Nothing is needed before a process."""

    async def close(self) -> None:
        """Every process ends with its attempt."""

    async def run(self, assignment: Assignment) -> AttemptOutcome:
        """Carry out one attempt as a process of its own."""
        work = _Process(self._ctx, assignment)
        try:
            boundary = await blocking(bound, self._ctx, assignment.job, assignment.scratch)
            await work.run(boundary)
            if work.cannot_resume:
                # A thread that was cut before its first answer has left nothing to go on with.
                work = _Process(self._ctx, assignment, resumes=False)
                await work.run(boundary)
            work.record.notices += [note for note in boundary.notices if note not in work.record.notices]
        except BatonError as refused:
            work.failure = TurnFailure(failure_class=FailureClass.BAD_REQUEST, message=refused.message)
        except OSError as error:
            message = f"codex exec could not be started: {error}"
            work.failure = TurnFailure(failure_class=FailureClass.CRASH, message=message)
        finally:
            with anyio.CancelScope(shield=True):
                await blocking(shutil.rmtree, assignment.scratch, ignore_errors=True)
        return work.outcome()


class _Process:
    """One process and what is known of it."""

    def __init__(self, ctx: PoolContext, assignment: Assignment, *, resumes: bool = True) -> None:
        self._ctx, self._assignment = ctx, assignment
        self._resumed = assignment.thread_id if resumes else None
        self.record = ExecRecord()
        self.failure: TurnFailure | None = None
        self._ended: Ended | None = None
        self._began = False
        self._halted = False
        self._last: float | None = None

    @property
    def cannot_resume(self) -> bool:
        """Whether Codex did not know the thread that was to go on."""
        return (
            self._resumed is not None
            and self.record.thread_id is None
            and self._ended is not None
            and self._ended.exit_code not in (0, None)
            and not self._halted
        )

    async def run(self, boundary: JobBoundary) -> None:
        """Start it, read its lines as they come, and see its whole tree ended."""
        assignment, machine = self._assignment, self._ctx.machine
        if assignment.halt.is_set():
            self._halted = True
            return
        argv = exec_argv(
            machine.binary.path,
            boundary.settings,
            resumed=self._resumed,
            schema=self._schema(),
            disabled_servers=machine.home.foreign_servers,
        )
        env = machine.server_environment(self._ctx.house, self._ctx.pool_id)
        env = with_bubblewrap(env, machine.binary.path)
        child = await open_child(argv, cwd=assignment.job.workdir, env=env, stderr=stderr_of(assignment.log))
        number = self._ctx.record_process("exec", child.pid)
        self._began = True
        try:
            async with child:
                await self._talk(child)
        finally:
            self._ctx.house.ledger.end_pool_process(number)

    def outcome(self) -> AttemptOutcome:
        record, route = self.record, self._assignment.job.route
        failure = self.failure or record.failure
        exited_well = self._ended is not None and self._ended.exit_code == 0
        completed = record.completed and exited_well and failure is None
        if failure is None and not completed and not self._halted:
            failure = self._how_it_ended()
        return AttemptOutcome(
            completed=completed,
            began=self._began,
            interrupted=self._halted and not completed,
            resumed=self._resumed is not None,
            message=record.final_message,
            thread_id=record.thread_id,
            usage=record.usage,
            failure=failure,
            route=Route(tier=route.tier, asked_model=route.model, asked_effort=route.effort),
            attested=False,
            notices=tuple(record.notices),
        )

    def _schema(self) -> Path | None:
        schema = self._assignment.job.output_schema
        if schema is None:
            return None
        path = self._assignment.scratch / "output-schema.json"
        path.write_text(json.dumps(schema), encoding="utf-8")
        return path

    async def _talk(self, child: Child) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._feed, child)
            tasks.start_soon(self._end_on_halt, child)
            tasks.start_soon(self._watch, child)
            with EventLog(self._assignment.log) as log:
                async for line in read_lines(child.stdout):
                    self._take(line, log)
            self._ended = await child.wait()
            tasks.cancel_scope.cancel()
        if log.fault is not None:
            self.record.notices.append(log.fault)

    async def _feed(self, child: Child) -> None:
        text = self._assignment.text if self._resumed is None else self._assignment.resume_text
        try:
            await child.stdin.send(text.encode())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # it has ended; how, is told by its end
        finally:
            await child.stdin.aclose()

    def _take(self, line: bytes, log: EventLog) -> None:
        self._last = anyio.current_time()
        if not line.strip():
            return
        log.line(line)
        event = read_object(line)
        if event is None:
            return
        known = self.record.thread_id
        self.record.take(event)
        if self.record.thread_id is not None and known is None:
            self._assignment.on_thread(self.record.thread_id)
        if self.record.answered:
            self._assignment.on_answer()

    async def _end_on_halt(self, child: Child) -> None:
        await self._assignment.halt.wait()
        self._halted = True
        await child.end()

    async def _watch(self, child: Child) -> None:
        """End it at the deadline that comes first."""
        begun, deadlines = anyio.current_time(), self._assignment.deadlines
        while True:
            until, which = deadlines.next(begun, self._last)
            left = until - anyio.current_time()
            if left <= 0:
                self.failure = deadlines.failure(which)
                await child.end()
                return
            # A line may come meanwhile, and with it another deadline.
            await anyio.sleep(min(left, LOOK_SECONDS))

    def _how_it_ended(self) -> TurnFailure:
        ended = self._ended
        how = "codex exec did not end its turn"
        if ended is not None and ended.signal is not None:
            how = f"codex exec was killed by signal {ended.signal}"
        elif ended is not None and ended.exit_code:
            how = f"codex exec ended with status {ended.exit_code}"
        said = _tail(stderr_of(self._assignment.log))
        return TurnFailure(failure_class=FailureClass.CRASH, message=f"{how}: {said}" if said else how)


def stderr_of(log: Path) -> Path:
    """Where the errors of the process are whose events go to `log`."""
    return log.with_suffix(".stderr")


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - STDERR_SHOWN))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:400] if lines else ""
