"""Works a pool off: what may start starts, every end is settled, and the ledger knows it first."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Sequence
from functools import partial

import anyio
from anyio.abc import TaskGroup
from pydantic import JsonValue

from baton.contract.errors import BatonError
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.engine.stop import Stop, StopReason
from baton.ledger.base import now as wall_clock
from baton.ledger.pool_records import JobState, PoolState
from baton.ledger.pools import KnownJob
from baton.pool.afterwards import Afterwards, afterwards, skipped
from baton.pool.attempt import Attempted, Plan, carry, deadlines_of, first_record, refused
from baton.pool.backend import Assignment, Backend
from baton.pool.backends import make_backend, make_isolated
from baton.pool.context import PoolContext, open_context
from baton.pool.directories import Directories
from baton.pool.events import FAILED_NAMED, PoolEnd, PoolEvent, Tell
from baton.pool.jobs import Job
from baton.pool.opening import OpenPool, may_run
from baton.pool.queue import Entry, JobQueue
from baton.pool.recorder import Recorder
from baton.pool.recover import settle_open_attempts
from baton.pool.settings import PoolSettings
from baton.pool.throttle import Throttle

LOOK_SECONDS = 0.5
"""How often a running pool looks whether somebody asks something of it, or a directory has become free."""

WRITER_GRACE_SECONDS = 15.0
"""How long a writer that could not be run again may go on when the pool is told to stop."""

UNSUCCESSFUL = (JobState.FAILED, JobState.INTERRUPTED, JobState.SKIPPED)


async def run_pool(
    house: House,
    opened: OpenPool,
    jobs: Sequence[Job],
    settings: PoolSettings,
    tell: Tell,
    stop: Stop,
    *,
    backend: Backend | None = None,
) -> PoolEnd:
    """Work off what is left of an open pool; how it ended.

    What goes wrong with a job is recorded and told, never raised. `tell` must not block. When `stop` is
    asked, nothing more starts: what can be repeated ends at once, a writer that could not be gets 15 s to
    finish. `backend` replaces the one that the settings name. Raises `BatonError` when the surroundings
    (Codex, the state folder) are not as they must be; the pool is then at rest, with all that was done.
    """
    ctx: PoolContext | None = None
    if backend is None:
        ctx = await open_context(house, opened.pool_id)
        backend = make_backend(ctx, settings)
    run = _Run(house, opened, jobs, settings, tell, stop, backend, ctx)
    try:
        return await run.run()
    except BaseExceptionGroup as group:
        raise innermost(group) from None
    finally:
        with anyio.CancelScope(shield=True):
            await run.close()
            for process in house.ledger.pool_processes(opened.pool_id):
                house.ledger.end_pool_process(process.process_id)
            await blocking(house.ledger.maintain)


class _Run:
    """One invocation."""

    def __init__(
        self,
        house: House,
        opened: OpenPool,
        jobs: Sequence[Job],
        settings: PoolSettings,
        tell: Tell,
        stop: Stop,
        backend: Backend,
        ctx: PoolContext | None,
    ) -> None:
        self._house, self._ledger = house, house.ledger
        self._pool_id = opened.pool_id
        self._jobs, self._settings, self._tell, self._stop = jobs, settings, tell, stop
        self._backend, self._ctx = backend, ctx
        self._isolated: Backend | None = None
        self._recorder = Recorder(house.ledger)
        self._queue = JobQueue()
        # Where scopes are not held by the sandbox, writers take turns whatever was chosen.
        prevents = ctx is None or ctx.machine.prevents
        self._directories = Directories(
            house, opened.pool_id, together=settings.allow_disjoint_parallel_writers and prevents
        )
        self._running: set[Entry] = set()
        self._changed = anyio.Event()
        self._began = time.monotonic()
        self._over = False
        """The time of the whole pool is used up."""
        self._fault: BatonError | None = None
        self._shown: dict[str, object] = {}
        self._throttle = Throttle(
            settings.concurrency,
            clock=wall_clock,
            dice=random.random,
            backoff_seconds=settings.backoff_seconds,
            pause_seconds=settings.pause_seconds,
            breaker_failures=settings.breaker_failures,
            warms_up=backend.warms_up,
            token_budget=settings.token_budget,
            tokens=self._ledger.pool_tokens(opened.pool_id),
        )

    async def close(self) -> None:
        """End whatever runs and remove what was only for the work."""
        for backend in (self._backend, self._isolated):
            if backend is not None:
                await backend.close()
        if self._ctx is not None:
            await self._ctx.close()

    async def run(self) -> PoolEnd:
        self._ledger.update_pool(
            self._pool_id,
            state=PoolState.RUNNING,
            note=None,
            asked=None,
            live=self._throttle.live(),
            began_at=wall_clock(),
            ended_at=None,
        )
        try:
            self._tell(PoolEvent("pool.began", data={"jobs": len(self._jobs)}))
            self._fill()
            await self._backend.start()
            self._throttle.spent(None)
            async with anyio.create_task_group() as watchers:
                watchers.start_soon(self._recorder.run)
                watchers.start_soon(self._watch)
                watchers.start_soon(self._halt_on_stop)
                async with anyio.create_task_group() as lanes:
                    await self._schedule(lanes)
                watchers.cancel_scope.cancel()
        except BaseException as error:
            cause = innermost(error)
            said = cause.message if isinstance(cause, BatonError) else f"{type(cause).__name__}: {cause}"
            self._rest(PoolState.INTERRUPTED, f"it failed: {said}")
            raise
        finally:
            self._directories.close()
        return self._end()

    # -- beginning and end -------------------------------------------------------------------------

    def _fill(self) -> None:
        """Queue what is to be done."""
        past = self._ledger.pool_job_states(self._pool_id, fresh=False)
        lost: list[str] = []
        waiting: list[Entry] = []
        for position, job in enumerate(self._jobs):
            before = past.get(job.id)
            entry = Entry(job, position)
            if before is not None:
                if before.state.at_rest:
                    if before.state is not JobState.SUCCEEDED:
                        lost.append(job.id)
                    continue
                if not may_run(job, before):
                    raise AssertionError(f"job {job.id} may not run again and is queued")
                entry.attempts, entry.touched, entry.named = before.attempts, before.touched, before.named
                entry.thread_id, entry.run_id = before.thread_id, before.run_id
            missing = [name for name in job.depends_on if not _has_succeeded(past.get(name))]
            self._queue.add_after(entry, missing)
            if not missing:
                waiting.append(entry)
        for entry in waiting:
            self._queue.add(entry)
        lost_too = {
            entry.job.id: skipped(name) for job_id in lost for entry, name in self._queue.lost(job_id)
        }
        self._ledger.settle_pool_jobs(self._pool_id, lost_too)

    def _end(self) -> PoolEnd:
        if self._fault is not None:
            # Where the fault was that of a moment; else the next start does it.
            with contextlib.suppress(BatonError):
                settle_open_attempts(self._house, self._pool_id, self._fault.message)
        counts = self._ledger.pool_counts(self._pool_id)
        left = counts.get(JobState.QUEUED, 0)
        stopping = self._throttle.stopping
        note: str | None = None
        if self._fault is not None:
            state, note = PoolState.STOPPED, self._fault.message
        elif self._stop.reason is StopReason.CANCELLED:
            state, note = PoolState.CANCELLED, self._stop.detail
        elif self._stop.asked:
            state, note = PoolState.INTERRUPTED, self._stop.detail
        elif stopping is not None and left:
            state, note = PoolState.STOPPED, stopping.why
        else:
            state = PoolState.DONE
        self._rest(state, note)
        back_at = stopping.back_at if stopping is not None and state is PoolState.STOPPED else None
        self._tell(PoolEvent("pool.ended", data={"state": state.value, "note": note}))
        unsuccessful = self._ledger.pool_jobs(self._pool_id, states=UNSUCCESSFUL, limit=FAILED_NAMED)
        return PoolEnd(
            pool_id=self._pool_id,
            state=state,
            counts=counts,
            note=note,
            back_at=back_at,
            failed=tuple((job.job_id, job.reason or job.state.value) for job in unsuccessful),
        )

    def _rest(self, state: PoolState, note: str | None) -> None:
        self._ledger.update_pool(
            self._pool_id,
            state=state,
            note=note,
            asked=None,
            live=self._throttle.live() if state is PoolState.STOPPED else {},
            ended_at=wall_clock(),
        )

    # -- the loop ----------------------------------------------------------------------------------

    @property
    def _stopping(self) -> bool:
        return (
            self._stop.asked or self._over or self._fault is not None or self._throttle.stopping is not None
        )

    async def _schedule(self, lanes: TaskGroup) -> None:
        told = False
        while True:
            self._changed = anyio.Event()
            self._queue.release(wall_clock())
            if self._stopping:
                if not told:
                    told = True
                    self._tell(PoolEvent("pool.stopping", data={"why": self._why()}))
            else:
                self._start_what_may(lanes)
            self._show()
            if not self._running and (self._stopping or not len(self._queue)):
                return
            with anyio.move_on_after(self._patience()):
                await self._changed.wait()

    def _start_what_may(self, lanes: TaskGroup) -> None:
        for _ in range(self._throttle.room(len(self._running))):
            writers = self._directories.writers < self._settings.write_concurrency
            entry = self._queue.pop(self._directories.take, writers=writers)
            if entry is None:
                return
            self._running.add(entry)
            self._throttle.started()
            lanes.start_soon(self._lane, entry)

    def _patience(self) -> float | None:
        """Seconds after which something may have changed by itself."""
        moments = [self._queue.next_moment(), self._throttle.wakes_at()]
        waits = [max(0.0, moment - wall_clock()) for moment in moments if moment is not None]
        if self._queue.has_blocked:
            waits.append(LOOK_SECONDS)
        return min(waits) + 0.001 if waits else None

    # -- one attempt -------------------------------------------------------------------------------

    async def _lane(self, entry: Entry) -> None:
        try:
            await self._attempt(entry)
        except BatonError as fault:
            # Not the job's, but that of what everything here stands on: nothing more can be recorded.
            self._fault = self._fault or fault
        finally:
            self._running.discard(entry)
            if entry.takes_directory:
                self._directories.give_back(entry)
                self._queue.unblock(entry.job.workdir)
            self._changed.set()

    async def _attempt(self, entry: Entry) -> None:
        job, backend = entry.job, self._backend_for(entry.job)
        entry.halt = anyio.Event()
        if backend.jitter_seconds and len(self._running) > 1:
            with anyio.move_on_after(random.random() * backend.jitter_seconds):
                await entry.halt.wait()
        if self._stopping:
            self._queue.add(entry)
            return
        plan = Plan(job, entry.position, entry.attempts + 1, entry.thread_id, entry.run_id)
        record = first_record(self._pool_id, plan, backend)
        await self._recorder.record(
            partial(self._ledger.begin_pool_attempt, record),
            prepare=partial(self._prepare_log, record.log) if self._ctx is not None else None,
            durable=job.writes,
        )
        before = (entry.touched, entry.named)
        entry.attempts, entry.touched, entry.named = plan.attempt, True, False
        self._tell(PoolEvent("job.started", job.id, plan.attempt))
        assignment = self._assignment(entry, plan, record.log)
        refusal = self._directories.refusal(entry)
        if refusal is None:
            done = await carry(backend, assignment, record, self._ctx)
        else:
            done = refused(record, refusal)
        if not done.began:
            entry.touched, entry.named = before
        await self._settle(entry, done)

    def _backend_for(self, job: Job) -> Backend:
        if not job.isolate or self._ctx is None:
            return self._backend
        if self._isolated is None:
            self._isolated = make_isolated(self._ctx)
        return self._isolated

    def _prepare_log(self, log: str | None) -> None:
        assert log is not None
        (self._house.state.root / log).parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _assignment(self, entry: Entry, plan: Plan, log: str | None) -> Assignment:
        job, ledger = entry.job, self._ledger
        assert entry.halt is not None and log is not None
        spent = time.monotonic() - self._began
        total = self._settings.total_seconds
        named = (self._pool_id, job.id, plan.attempt)
        return Assignment(
            job=job,
            attempt=plan.attempt,
            thread_id=plan.thread_id,
            run_id=plan.run_id,
            deadlines=deadlines_of(job, self._settings, None if total is None else total - spent),
            log=self._house.state.root / log,
            scratch=self._house.state.scratch / self._pool_id / f"{entry.position}-{plan.attempt}",
            halt=entry.halt,
            on_thread=lambda thread: self._note(partial(ledger.name_pool_thread, *named, thread)),
            on_run=lambda run: self._note(partial(ledger.name_pool_run, *named, run)),
            on_answer=self._answered,
        )

    def _note(self, write: Callable[[], None]) -> None:
        self._recorder.soon(write)

    def _answered(self) -> None:
        if self._throttle.answered():
            self._changed.set()

    # -- after an attempt --------------------------------------------------------------------------

    async def _settle(self, entry: Entry, done: Attempted) -> None:
        """Decide what the attempt means for its job and the pool, and record all of it at once."""
        self._throttle.spent(done.record.usage.total_tokens if done.record.usage else None)
        if done.trouble is not None:
            self._throttle.failed(done.trouble, done.failure)
        elif not done.halted:
            self._throttle.succeeded()
        settings, record = self._settings, done.record
        after = afterwards(entry, done, retries=settings.retries, backoff_seconds=settings.backoff_seconds)
        lost: dict[str, dict[str, object]] = {}
        if after.state in UNSUCCESSFUL:
            lost = {each.job.id: skipped(name) for each, name in self._queue.lost(entry.job.id)}

        def write() -> None:
            self._ledger.end_pool_attempt(record, after.fields)
            if lost:
                self._ledger.settle_pool_jobs(self._pool_id, lost)

        keep = None if done.message is None else partial(self._keep, done.message)
        await self._recorder.record(write, prepare=keep)
        entry.halt = None
        said: dict[str, JsonValue] = {"reason": record.message, "class": record.failure_class}
        if after.state is JobState.QUEUED:
            self._again(entry, done, after)
            said |= {"why": record.message, "seconds": after.again_in}
            self._tell(PoolEvent("job.retry", entry.job.id, entry.attempts, said))
            return
        if after.state is JobState.SUCCEEDED:
            self._queue.succeeded(entry.job.id)
        said["state"] = after.state.value
        self._tell(PoolEvent("job.ended", entry.job.id, entry.attempts, said))
        for job_id, fields in lost.items():
            data: dict[str, JsonValue] = {"state": JobState.SKIPPED.value, "reason": str(fields["reason"])}
            self._tell(PoolEvent("job.ended", job_id, None, data))

    def _again(self, entry: Entry, done: Attempted, after: Afterwards) -> None:
        """Queue it for its next try, a little dispersed."""
        entry.tries += after.retries
        entry.waits += after.waits
        entry.thread_id = done.record.thread_id if after.fields["thread_id"] is not None else None
        entry.run_id = done.record.run_id if after.fields["run_id"] is not None else None
        self._queue.add_at(entry, wall_clock() + after.again_in * (1.0 + 0.25 * random.random()))

    def _keep(self, message: bytes) -> None:
        self._house.artifacts.put_bytes(message)

    # -- watching ----------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """What comes from outside: somebody asks, directories become free, time runs out."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            total = self._settings.total_seconds
            if total is not None and time.monotonic() - self._began > total and not self._over:
                self._over = True
                self._throttle.stop(f"the pool's time is used up ({total:g} s)")
                self._halt(lambda entry: True)
                self._changed.set()
            if self._ledger.pool(self._pool_id).asked == "cancel":
                self._stop.ask(StopReason.CANCELLED, "cancelled")
            if self._queue.has_blocked:
                self._queue.unblock()
                self._changed.set()

    async def _halt_on_stop(self) -> None:
        await self._stop.wait()
        self._changed.set()
        self._halt(lambda entry: not entry.takes_directory or entry.job.safe_retry)
        await anyio.sleep(WRITER_GRACE_SECONDS)
        self._halt(lambda entry: True)

    def _halt(self, which: Callable[[Entry], bool]) -> None:
        for entry in self._running:
            if entry.halt is not None and which(entry):
                entry.halt.set()

    def _why(self) -> str:
        if self._fault is not None:
            return self._fault.message
        if self._stop.asked:
            return self._stop.detail
        return self._throttle.stopping.why if self._throttle.stopping is not None else ""

    def _show(self) -> None:
        """Write down how much may run, for watchers, when that has changed."""
        live = self._throttle.live()
        if live == self._shown:
            return
        before, self._shown = self._shown, dict(live)
        self._note(partial(self._write_live, dict(live)))
        if before and live["pausedUntil"] != before["pausedUntil"]:
            if live["pausedUntil"] is None:
                self._tell(PoolEvent("pool.resumed"))
            else:
                self._tell(PoolEvent("pool.paused", data={"until": live["pausedUntil"], "why": live["why"]}))
        if before and live["limit"] != before["limit"]:
            self._tell(PoolEvent("pool.limit", data={"limit": live["limit"]}))
        if live["breaker"] is not None and live["breaker"] != before.get("breaker"):
            self._tell(PoolEvent("pool.breaker", data={"why": live["breaker"]}))

    def _write_live(self, live: dict[str, object]) -> None:
        self._ledger.update_pool(self._pool_id, durable=False, live=live)


def _has_succeeded(known: KnownJob | None) -> bool:
    return known is not None and known.state is JobState.SUCCEEDED


def innermost(error: BaseException) -> BaseException:
    """What went wrong, without the groups that task groups wrap around it: the first of several."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
