"""Works a pool off: what may start starts, every end is settled, and the ledger knows it first."""

from __future__ import annotations

import random
from collections.abc import Sequence

import anyio
from anyio.abc import TaskGroup
from pydantic import JsonValue

from baton.contract.errors import BatonError
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.engine.stop import Stop, StopReason
from baton.ledger.base import now as wall_clock
from baton.ledger.pool_records import PoolState
from baton.pool.backend import Backend
from baton.pool.backends import make_backend
from baton.pool.context import PoolContext, open_context
from baton.pool.directories import Directories
from baton.pool.ending import end, rest
from baton.pool.events import PoolEnd, PoolEvent, Tell
from baton.pool.filling import fill
from baton.pool.invocation import Invocation
from baton.pool.jobs import Job
from baton.pool.opening import OpenPool
from baton.pool.pauses import heed_pauses
from baton.pool.queue import Entry
from baton.pool.recorder import Recorder
from baton.pool.settings import PoolSettings
from baton.pool.showing import Showing
from baton.pool.throttle import Throttle
from baton.pool.working import Workers

LOOK_SECONDS = 0.5
"""How often a running pool looks whether somebody asks something of it, or a directory has become free."""

WRITER_GRACE_SECONDS = 15.0
"""How long a writer that could not be run again may go on when the pool is told to stop."""


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
    inv = _invocation(house, opened, settings, tell, stop, backend, ctx)
    workers = Workers(inv)
    try:
        return await _run(inv, workers, jobs)
    except BaseExceptionGroup as group:
        raise innermost(group) from None
    finally:
        with anyio.CancelScope(shield=True):
            await workers.close()
            if ctx is not None:
                await ctx.close()
            for process in house.ledger.pool_processes(opened.pool_id):
                house.ledger.end_pool_process(process.process_id)
            await blocking(house.ledger.maintain)


def _invocation(
    house: House,
    opened: OpenPool,
    settings: PoolSettings,
    tell: Tell,
    stop: Stop,
    backend: Backend,
    ctx: PoolContext | None,
) -> Invocation:
    # Where scopes are not held by the sandbox, writers take turns whatever was chosen.
    prevents = ctx is None or ctx.machine.prevents
    return Invocation(
        house,
        opened.pool_id,
        settings,
        tell,
        stop,
        backend,
        ctx,
        Throttle(
            settings.concurrency,
            clock=wall_clock,
            dice=random.random,
            backoff_seconds=settings.backoff_seconds,
            pause_seconds=settings.pause_seconds,
            breaker_failures=settings.breaker_failures,
            warms_up=backend.warms_up,
            token_budget=settings.token_budget,
            tokens=house.ledger.pool_tokens(opened.pool_id),
        ),
        Recorder(house.ledger),
        Directories(house, opened.pool_id, together=settings.allow_disjoint_parallel_writers and prevents),
    )


async def _run(inv: Invocation, workers: Workers, jobs: Sequence[Job]) -> PoolEnd:
    # Not durable: when the machine goes down before anything else is written, nothing has run.
    inv.ledger.update_pool(
        inv.pool_id,
        durable=False,
        state=PoolState.RUNNING,
        note=None,
        asked=None,
        live=inv.throttle.live(),
        began_at=wall_clock(),
        ended_at=None,
    )
    try:
        inv.tell(PoolEvent("pool.began", data={"jobs": len(jobs)}))
        fill(inv.queue, inv.ledger, inv.pool_id, jobs)
        await inv.backend.start()
        inv.throttle.spent(None)
        async with anyio.create_task_group() as watchers:
            watchers.start_soon(inv.recorder.run)
            watchers.start_soon(_watch, inv)
            watchers.start_soon(_halt_on_stop, inv)
            async with anyio.create_task_group() as lanes:
                await _schedule(inv, workers, lanes)
            watchers.cancel_scope.cancel()
    except BaseException as error:
        cause = innermost(error)
        said = cause.message if isinstance(cause, BatonError) else f"{type(cause).__name__}: {cause}"
        rest(inv, PoolState.INTERRUPTED, f"it failed: {said}")
        raise
    finally:
        inv.directories.close()
    return end(inv)


async def _schedule(inv: Invocation, workers: Workers, lanes: TaskGroup) -> None:
    showing, told = Showing(inv), False
    while True:
        changed = inv.changes()
        inv.queue.release(wall_clock())
        if not inv.stopping:
            _start_what_may(inv, workers, lanes)
        if inv.stopping and not told:
            told = True
            # Others are told to end at once; these get their time when it is a signal that stops the pool.
            patient = sum(not _ends_at_once(entry) for entry in inv.running) if inv.stop.asked else 0
            data: dict[str, JsonValue] = {"why": inv.why_stopping, "writers": patient}
            inv.tell(PoolEvent("pool.stopping", data=data))
        showing.show()
        if not inv.running and (inv.stopping or not len(inv.queue)):
            return
        with anyio.move_on_after(_patience(inv)):
            await changed.wait()


def _start_what_may(inv: Invocation, workers: Workers, lanes: TaskGroup) -> None:
    room = inv.throttle.room(len(inv.running))
    if not room or not len(inv.queue):
        return
    heed_pauses(inv)
    while room and not inv.stopping:
        writers = inv.directories.writers < inv.settings.write_concurrency
        entry = inv.queue.pop(inv.directories.take, writers=writers)
        if entry is None:
            return
        inv.running.add(entry)
        inv.throttle.started()
        lanes.start_soon(workers.work, entry)
        room -= 1


def _patience(inv: Invocation) -> float | None:
    """Seconds after which something may have changed by itself."""
    moments = [inv.queue.next_moment(), inv.throttle.wakes_at()]
    waits = [max(0.0, moment - wall_clock()) for moment in moments if moment is not None]
    if inv.queue.has_blocked:
        waits.append(LOOK_SECONDS)
    return min(waits) + 0.001 if waits else None


async def _watch(inv: Invocation) -> None:
    """What comes from outside: somebody asks, directories become free, time runs out."""
    while True:
        await anyio.sleep(LOOK_SECONDS)
        left = inv.seconds_left
        if left is not None and left < 0 and not inv.is_over:
            inv.is_over = True
            inv.throttle.stop(f"the pool's time is used up ({inv.settings.total_seconds:g} s)")
            inv.halt(lambda entry: True)
            inv.change()
        if inv.ledger.pool(inv.pool_id).asked == "cancel":
            inv.stop.ask(StopReason.CANCELLED, "cancelled")
        if inv.queue.has_blocked:
            inv.queue.unblock()
            inv.change()


async def _halt_on_stop(inv: Invocation) -> None:
    await inv.stop.wait()
    inv.change()
    inv.halt(_ends_at_once)
    await anyio.sleep(WRITER_GRACE_SECONDS)
    inv.halt(lambda entry: True)


def _ends_at_once(entry: Entry) -> bool:
    """Whether an attempt that is cut can be made again: all but those of writers that may not be repeated."""
    return not entry.takes_directory or entry.job.safe_retry


def innermost(error: BaseException) -> BaseException:
    """What went wrong, without the groups that task groups wrap around it: the first of several."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
