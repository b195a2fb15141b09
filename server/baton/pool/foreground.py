"""A pool in the foreground of a terminal: a signal stops it gently, a second one by force."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Sequence

import anyio

from baton.engine.house import House
from baton.engine.stop import Stop, StopReason
from baton.pool.backend import Backend
from baton.pool.events import PoolEnd, Tell
from baton.pool.jobs import Job
from baton.pool.opening import OpenPool
from baton.pool.run import innermost, run_pool
from baton.pool.settings import PoolSettings
from baton.process.tree import become_subreaper, end_descendants

FORCED_STATUS = 130
"""Exit status when a second signal ended it."""


def run_in_foreground(
    house: House,
    opened: OpenPool,
    jobs: Sequence[Job],
    settings: PoolSettings,
    tell: Tell,
    *,
    backend: Backend | None = None,
    forced: Callable[[], None] = lambda: None,
) -> PoolEnd:
    """`run_pool` on an event loop of its own, until it is done or INT, TERM or HUP asks it to stop.

    A second signal ends every process below this one and this one too, with exit status 130; what was at work
    is settled by the next start. `forced` is called last then, and must not wait. To be called from the main
    thread, for the rest of a program's life: every process below it is ended when it returns.
    """
    become_subreaper()
    try:
        return anyio.run(_run, house, opened, jobs, settings, tell, backend, forced)
    except BaseExceptionGroup as group:
        raise innermost(group) from None
    finally:
        end_descendants()


async def _run(
    house: House,
    opened: OpenPool,
    jobs: Sequence[Job],
    settings: PoolSettings,
    tell: Tell,
    backend: Backend | None,
    forced: Callable[[], None],
) -> PoolEnd:
    stop = Stop()
    end: PoolEnd | None = None
    async with anyio.create_task_group() as watchers:
        watchers.start_soon(_signals, stop, forced)
        end = await run_pool(house, opened, jobs, settings, tell, stop, backend=backend)
        watchers.cancel_scope.cancel()
    assert end is not None
    return end


async def _signals(stop: Stop, forced: Callable[[], None]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
        count = 0
        async for number in received:
            count += 1
            if count > 1:
                with contextlib.suppress(Exception):
                    end_descendants(0.1)
                with contextlib.suppress(Exception):
                    forced()
                os._exit(FORCED_STATUS)
            stop.ask(StopReason.INTERRUPTED, f"told to stop ({signal.Signals(number).name})")
