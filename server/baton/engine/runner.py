"""`baton-runner RUN`: the process a run lives in. It holds the run's lock for life."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import sys

import anyio

from baton.contract.errors import BatonError
from baton.contract.states import FailureClass, RunState
from baton.engine.ahead import Preparation
from baton.engine.context import RunContext, open_run
from baton.engine.house import House
from baton.engine.life import integrate_named, live
from baton.engine.owner import OwnerWatch
from baton.engine.recover import capture_left, close_interrupted, recover_run
from baton.engine.spare import WAIT_OPTION, await_run
from baton.engine.stop import Stop, StopReason
from baton.ledger.locks import FileLock
from baton.ledger.records import CommandRecord, ProcessRecord
from baton.process.forked import guards_forked
from baton.process.logs import set_up_logging
from baton.process.tree import become_subreaper, boot_id, end_descendants, start_time
from baton.process.utf8 import go_on_in_utf8
from baton.runtime.use import hold_own_environment
from baton.workspace import warm

log = logging.getLogger(__name__)

OWNER_INTERVAL = 0.5
"""Seconds between two looks whether anybody still waits for the run."""

COMMAND_PAUSE = 0.1
"""Seconds between two looks for commands."""


def main() -> None:
    """Entry point. Exit status 0 when the run came to rest, 3 when another runner has it, 1 for a fault."""
    go_on_in_utf8()
    set_up_logging("info", "%(asctime)s %(levelname)s %(message)s")
    arguments = sys.argv[1:]
    if len(arguments) not in (1, 2):
        sys.stderr.write(f"usage: baton-runner RUN [LOCK-HANDLE], or {WAIT_OPTION} SOCKET-HANDLE\n")
        raise SystemExit(2)
    # What has been loaded stays for life: the collector need not walk through it again and again.
    gc.freeze()
    hold_own_environment()
    run_id, handle = arguments[0], int(arguments[1]) if len(arguments) == 2 else None
    if run_id == WAIT_OPTION and handle is not None:
        preparation = Preparation()
        given = await_run(handle, preparation.ask)
        if given is None:
            raise SystemExit(0)
        preparation.stop()
        run_id, handle = given
    try:
        raise SystemExit(anyio.run(_run, run_id, handle))
    except BatonError as error:
        sys.stderr.write(f"baton-runner: {error.message}\n")
        raise SystemExit(1) from None


async def _run(run_id: str, handle: int | None) -> int:
    become_subreaper()
    with House.open() as house:
        path = house.state.run_lock(run_id)
        lock = FileLock(path) if handle is None else FileLock.adopt(path, handle)
        if handle is None and not lock.try_acquire():
            return 3
        try:
            async with guards_forked():
                await _serve(house, run_id)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(end_descendants)
            for process in house.ledger.processes(run_id):
                house.ledger.end_process(process.process_id, "ended")
            house.ledger.maintain()
            lock.release()
    return 0


async def _serve(house: House, run_id: str) -> None:
    house.ledger.run(run_id)
    house.ledger.record_process(
        ProcessRecord(
            run_id=run_id,
            kind="runner",
            pid=os.getpid(),
            start_time=start_time(os.getpid()) or 0,
            boot_id=boot_id(),
        )
    )
    stop = Stop()
    async with anyio.create_task_group() as watchers:
        watchers.start_soon(_signals, stop)
        try:
            await _live(house, run_id, stop)
        except BaseException as raised:
            error = _innermost(raised)
            # Whatever it was, the record must not stay in a state that says somebody is at work.
            close_interrupted(house, run_id, _reason(error))
            if not isinstance(error, BatonError | Exception):
                raise
            log.error("run %s: %s", run_id, _reason(error), exc_info=not isinstance(error, BatonError))
        finally:
            # What is asked from now on is for the next runner: an answer from here would be a promise.
            watchers.cancel_scope.cancel()


async def _live(house: House, run_id: str, stop: Stop) -> None:
    run = house.ledger.run(run_id)
    if run.state in (RunState.RUNNING, RunState.INTEGRATING):
        await anyio.to_thread.run_sync(recover_run, house, run_id)
        run = house.ledger.run(run_id)
    ctx = await open_run(house, run_id, stop)
    warm.keep_only(ctx.repo)
    try:
        if run.state is RunState.QUEUED:
            await anyio.to_thread.run_sync(capture_left, house, run_id, ctx.repo)
            await _while_watched(ctx, house, stop)
        await _work_off_commands(ctx)
    finally:
        with anyio.CancelScope(shield=True):
            await ctx.close()


async def _while_watched(ctx: RunContext, house: House, stop: Stop) -> None:
    async with anyio.create_task_group() as watchers:
        watchers.start_soon(_commands, house, ctx.run_id, stop)
        watchers.start_soon(_clock, ctx, stop)
        if not ctx.run.background:
            grace = ctx.policy.deadlines.owner_grace_seconds
            watchers.start_soon(_owner, OwnerWatch(house.state, ctx.run_id, grace), stop)
        if any(not task.state.at_rest for task in house.ledger.tasks(ctx.run_id)):
            # Starts while the workspace is read; the first worker finds it ready.
            watchers.start_soon(ctx.servers.warm)
        await live(ctx)
        watchers.cancel_scope.cancel()


async def _owner(watch: OwnerWatch, stop: Stop) -> None:
    while not watch.gone():
        await anyio.sleep(OWNER_INTERVAL)
    stop.ask(StopReason.INTERRUPTED, "nobody waited for it any more")


async def _clock(ctx: RunContext, stop: Stop) -> None:
    seconds = ctx.policy.deadlines.run_seconds
    await anyio.sleep(seconds)
    why = f"the run took longer than {seconds:g} s (deadlines.run_seconds)"
    stop.ask(StopReason.INTERRUPTED, why, FailureClass.RUN_TIMEOUT)


async def _commands(house: House, run_id: str, stop: Stop) -> None:
    """Take what sessions ask for while the run works: cancelling is all that cannot wait."""
    while True:
        for command in house.ledger.take_commands(run_id):
            if command.action == "cancel":
                stop.ask(StopReason.CANCELLED, "cancelled")
            else:
                house.ledger.answer_command(
                    command.command_id, {"error": f"the run is at work; wait for it before {command.action}"}
                )
        await anyio.sleep(COMMAND_PAUSE)


async def _work_off_commands(ctx: RunContext) -> None:
    """What was asked of a run at rest, in the order asked."""
    for command in ctx.house.ledger.take_commands(ctx.run_id, again=True):
        if command.action == "integrate":
            await integrate_named(ctx, _names(command))
        state = ctx.house.ledger.run(ctx.run_id).state
        ctx.house.ledger.answer_command(command.command_id, {"state": state.value})


def _names(command: CommandRecord) -> list[str]:
    names = command.args.get("tasks")
    return [str(name) for name in names] if isinstance(names, list) else []


async def _signals(stop: Stop) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
        count = 0
        async for number in received:
            count += 1
            stop.ask(StopReason.INTERRUPTED, f"the runner was told to stop ({signal.Signals(number).name})")
            if count > 1:
                with contextlib.suppress(Exception):
                    end_descendants(0.1)
                os._exit(1)  # what is left is recovered by the next start


def _innermost(error: BaseException) -> BaseException:
    """What went wrong, without the groups that task groups wrap around it: the first of several."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, BatonError):
        return error.message
    return f"the runner failed: {type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
