"""Steers a run: cancel, resume, integrate, discard, keep; each may be repeated without harm."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from baton.contract.calls import ControlAction, ControlCall
from baton.contract.errors import Busy, InvalidInput, NotFound, WrongState
from baton.contract.evidence import TaskOutcome
from baton.contract.session import Session
from baton.contract.states import Integration, RunState, TaskState, Verdict
from baton.engine.house import House
from baton.engine.launch import start_runner
from baton.engine.life import is_kept_back, resting_state
from baton.engine.machine import bounds_of
from baton.engine.recover import recover_run
from baton.ledger.locks import FileLock
from baton.ledger.records import CommandState, NewEvent, RunRecord, TaskRecord

ANSWER_SECONDS = 60.0
"""How long a runner has to answer; what was asked is done all the same."""

LOCK_SECONDS = 15.0
"""How long the runner of a run at rest may take to end."""

_CANCELLED = "cancelled; what its workers had done is kept"


def steer(house: House, call: ControlCall, session: Session) -> str:
    """Do what is asked; one line on what was done.

    Raises `WrongState` when it does not fit the run's state, `NotFound` for unknown ids, `InvalidInput` when
    the asking session may not change the workspace.
    """
    run = house.ledger.run(call.run_id)
    _check_names(house, call)
    match call.action:
        case ControlAction.CANCEL:
            return _cancel(house, run)
        case ControlAction.RESUME:
            return _resume(house, run, session)
        case ControlAction.INTEGRATE:
            return _integrate(house, run, call.tasks, session)
        case ControlAction.DISCARD:
            return _discard(house, run, call.tasks)
        case ControlAction.KEEP:
            return _keep(house, run, call.tasks)


def _check_names(house: House, call: ControlCall) -> None:
    known = [task.task_id for task in house.ledger.tasks(call.run_id)]
    for name in call.tasks:
        if name not in known:
            raise NotFound(f"run {call.run_id} has no task {name!r}; it has {', '.join(known)}")


def _cancel(house: House, run: RunRecord) -> str:
    if run.state is RunState.CANCELLED:
        return "it was cancelled before"
    lock = FileLock(house.state.run_lock(run.run_id))
    if not lock.try_acquire():
        _ask_runner(house, run, "cancel", [])
        run = house.ledger.run(run.run_id)
        if run.state is not RunState.INTERRUPTED:
            return _CANCELLED if run.state is RunState.CANCELLED else f"nothing to cancel: it is {run.state}"
        # It stopped for a reason of its own just then; without its runner it can be closed.
        lock.acquire(timeout=LOCK_SECONDS)
    try:
        # No runner: whatever it was doing is over, and what it left is taken in first, as far as possible.
        recover_run(house, run.run_id, give_up=True)
        run = house.ledger.run(run.run_id)
        if run.state in (RunState.DONE, RunState.HELD, RunState.FAILED):
            return f"nothing to cancel: it is {run.state}"
        with house.ledger.transaction():
            for task in house.ledger.tasks(run.run_id):
                if task.state in (TaskState.INTERRUPTED, TaskState.QUEUED):
                    house.ledger.update_task(
                        run.run_id, task.task_id, state=TaskState.CANCELLED, verdict=Verdict.CANCELLED
                    )
            house.ledger.update_run(
                run.run_id, state=RunState.CANCELLED, note="cancelled", event=NewEvent(kind="run.cancelled")
            )
        return _CANCELLED
    finally:
        lock.release()


def _resume(house: House, run: RunRecord, session: Session) -> str:
    _may_change(house, run, session)
    lock = FileLock(house.state.run_lock(run.run_id))
    if run.state.at_rest:
        # The runner that brought it there may not have ended yet.
        lock.acquire(timeout=LOCK_SECONDS)
    elif not lock.try_acquire():
        return "it is at work"
    try:
        recover_run(house, run.run_id)
        run = house.ledger.run(run.run_id)
        if run.state not in (RunState.INTERRUPTED, RunState.CANCELLED, RunState.FAILED):
            raise WrongState(f"run {run.run_id} is {run.state}: there is nothing to resume")
        with house.ledger.transaction():
            for task in house.ledger.tasks(run.run_id):
                if task.state in (TaskState.INTERRUPTED, TaskState.CANCELLED, TaskState.SKIPPED):
                    house.ledger.update_task(
                        run.run_id,
                        task.task_id,
                        state=TaskState.QUEUED,
                        verdict=None,
                        reasons=[],
                        outcome=TaskOutcome(),
                    )
            house.ledger.update_run(
                run.run_id, state=RunState.QUEUED, note=None, event=NewEvent(kind="run.resumed")
            )
    except BaseException:
        lock.release()
        raise
    start_runner(house, run.run_id, lock)
    return "resumed"


def _integrate(house: House, run: RunRecord, names: list[str], session: Session) -> str:
    _may_change(house, run, session)
    if not run.state.at_rest:
        raise WrongState(f"run {run.run_id} is {run.state}: wait for it before integrating")
    for task in house.ledger.tasks(run.run_id):
        if task.task_id in names:
            _refuse_unfit(task)
    open_tasks = [task for task in house.ledger.tasks(run.run_id) if is_kept_back(task)]
    if not any(not names or task.task_id in names for task in open_tasks):
        return "nothing is kept back: there is nothing to integrate"
    if not names and all(task.verdict is not Verdict.VERIFIED for task in open_tasks):
        listed = ", ".join(task.task_id for task in open_tasks)
        raise WrongState(
            f"run {run.run_id} has no verified result; name what you want all the same: {listed}"
        )
    _ask_runner(house, run, "integrate", names)
    return "integrated as far as the result says"


def _refuse_unfit(task: TaskRecord) -> None:
    if task.result is None or task.result.evidence.commit is None:
        raise WrongState(f"task {task.task_id} has no result")
    if task.result.evidence.scope.violations:
        raise WrongState(
            f"task {task.task_id} changed files out of its scope and is not applied;"
            f" take what you want by git from {task.kept}"
        )


def _discard(house: House, run: RunRecord, names: list[str]) -> str:
    _refuse_at_work(run)
    landed = (Integration.APPLIED, Integration.NOTHING)
    _decide(house, run, names, lambda old: old if old in landed else Integration.DISCARDED, spared=False)
    return "discarded; it can still be inspected until `baton gc` removes it"


def _keep(house: House, run: RunRecord, names: list[str]) -> str:
    _refuse_at_work(run)
    _decide(
        house, run, names, lambda old: Integration.HELD if old is Integration.DISCARDED else old, spared=True
    )
    return "kept: `baton gc` leaves it alone until it is discarded"


def _refuse_at_work(run: RunRecord) -> None:
    if not run.state.at_rest:
        raise WrongState(f"run {run.run_id} is {run.state}: cancel it or wait for it first")


def _decide(
    house: House,
    run: RunRecord,
    names: list[str],
    decision: Callable[[Integration | None], Integration | None],
    *,
    spared: bool,
) -> None:
    """Change what became of the named tasks, or of all, and with it the state of a finished run."""
    with house.ledger.transaction():
        for task in house.ledger.tasks(run.run_id):
            old = task.outcome.integration
            new = decision(old)
            if (not names or task.task_id in names) and new is not old:
                house.ledger.update_task(run.run_id, task.task_id, outcome=TaskOutcome(integration=new))
        state = run.state
        resting, integration = resting_state(house.ledger.tasks(run.run_id), None)
        if state in (RunState.HELD, RunState.DONE):
            state = resting
        elif not spared and not names:
            state = RunState.CANCELLED  # given up as a whole
        house.ledger.update_run(
            run.run_id,
            state=state,
            integration=integration,
            # Part of a kept run may be discarded without giving up the rest.
            spared=spared or (run.spared and bool(names)),
            event=NewEvent(kind="run.kept" if spared else "run.discarded", data={"tasks": [*names]}),
        )


def _may_change(house: House, run: RunRecord, session: Session) -> None:
    profile = bounds_of(session, house.env)
    if not profile.may_write(Path(run.workspace)):
        raise InvalidInput(f"this session may not write in {run.workspace}; ask from one that may")


def _ask_runner(house: House, run: RunRecord, action: str, names: list[str]) -> None:
    """Have the run's runner do something, starting one when there is none, and wait for its answer."""
    command_id = house.ledger.post_command(run.run_id, action, {"tasks": [*names]})
    until = time.monotonic() + ANSWER_SECONDS
    version = house.ledger.data_version()
    while time.monotonic() < until:
        lock = FileLock(house.state.run_lock(run.run_id))
        if house.ledger.command(command_id).state is not CommandState.ANSWERED and lock.try_acquire():
            start_runner(house, run.run_id, lock)
        command = house.ledger.command(command_id)
        if command.state is CommandState.ANSWERED:
            fault = (command.result or {}).get("error")
            if isinstance(fault, str):
                raise WrongState(fault)
            return
        version = house.ledger.wait_for_change(version, 1.0)
    raise Busy(f"run {run.run_id} has not answered {action} yet; wait_run shows when it has")
