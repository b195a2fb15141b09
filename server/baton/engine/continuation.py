"""One more turn for a task at rest: the same thread, the same contract, whoever asks and whenever.

A result that landed is in the workspace, so the turn starts from the workspace as it is now, and only what it
changes there is carried over later. A result that did not land exists nowhere else: the turn starts from it,
measured from the base that it always had, and landing merges both parts as one.
"""

from __future__ import annotations

from pathlib import Path

from baton.codex.session_profile import read_session_profile
from baton.contract.calls import ContinueCall
from baton.contract.errors import InvalidInput, NotFound, WrongState
from baton.contract.evidence import TaskOutcome
from baton.contract.session import Session
from baton.contract.states import Integration, RunState, TaskState
from baton.engine.followup import AttemptKind
from baton.engine.house import House
from baton.engine.launch import start_runner
from baton.engine.plan import RunPlan
from baton.engine.private import open_repository
from baton.engine.recover import recover_run
from baton.engine.route import inherited
from baton.ledger.locks import FileLock
from baton.ledger.records import AttemptRecord, JsonObject, NewEvent, RunRecord, TaskRecord
from baton.verify.command import read_command

LOCK_SECONDS = 15.0
"""How long the runner that brought the run to rest may take to end."""

READ_ONLY = "the session that continued it may not write in the workspace"


def continue_task(house: House, call: ContinueCall, session: Session) -> str:
    """Plan the turn and start the run's runner; the id of the task.

    Tasks that were skipped for want of this one are queued again. Raises `NotFound` for unknown ids,
    `InvalidInput` for bad arguments or a session that may not read the workspace, and `WrongState` for a run
    that is not at rest and a task without a thread or that was discarded; nothing has changed then.
    """
    run = house.ledger.run(call.run_id)
    for command in call.verification_commands:
        read_command(command)
    task = _named(house, call)
    hold = _hold_reason(house, run, session)
    if not run.state.at_rest:
        raise WrongState(f"run {run.run_id} is {run.state}: wait_run until it rests, then continue")
    lock = FileLock(house.state.run_lock(run.run_id))
    lock.acquire(timeout=LOCK_SECONDS)
    try:
        recover_run(house, run.run_id)
        run, task = house.ledger.run(run.run_id), house.ledger.task(run.run_id, task.task_id)
        attempt = _planned(house, run, task, call.message)
        _queue(house, run, task, attempt, call, session, hold)
    except BaseException:
        lock.release()
        raise
    start_runner(house, run.run_id, lock)
    return task.task_id


def _named(house: House, call: ContinueCall) -> TaskRecord:
    tasks = {task.task_id: task for task in house.ledger.tasks(call.run_id)}
    names = ", ".join(tasks)
    if call.task_id is None:
        if len(tasks) != 1:
            raise InvalidInput(f"taskId: run {call.run_id} has several tasks; name one of {names}")
        return next(iter(tasks.values()))
    if call.task_id not in tasks:
        raise NotFound(f"run {call.run_id} has no task {call.task_id!r}; it has {names}")
    return tasks[call.task_id]


def _hold_reason(house: House, run: RunRecord, session: Session) -> str | None:
    """Why what comes may not be applied for this session; None when it may."""
    if session.profile is None:
        return None
    profile, workspace = read_session_profile(session.profile, house.env), Path(run.workspace)
    if not profile.may_read(workspace):
        raise InvalidInput(f"this session may not read {workspace}; ask from one that may")
    return None if profile.may_write(workspace) else READ_ONLY


def _planned(house: House, run: RunRecord, task: TaskRecord, message: str) -> AttemptRecord:
    """The attempt that goes on from the last one. Raises `WrongState` when there is nothing to go on from."""
    where = f"task {task.task_id} of run {run.run_id}"
    if task.outcome.integration is Integration.DISCARDED:
        raise WrongState(f"{where} was discarded; delegate it anew, or control_run keep it first")
    past = house.ledger.attempts(run.run_id, task.task_id)
    last = past[-1] if past else None
    if last is None or last.thread_id is None:
        raise WrongState(f"{where} has no worker's thread to continue ({task.state}); delegate it anew")
    data: JsonObject = {"why": "the supervisor asks for more", "message": message, **inherited(last)}
    base = last.base_commit
    if task.outcome.integration in (Integration.APPLIED, Integration.NOTHING):
        repo = open_repository(house, run)
        ref = f"refs/runs/{run.run_id}/base-{task.task_id}/{last.attempt + 1}"
        base = repo.snapshot(ref).commit
        data["fromWorkspace"] = True
    else:
        commit = next((attempt.commit for attempt in reversed(past) if attempt.commit), None)
        if commit is not None:
            data["treeFrom"] = commit
    return AttemptRecord(
        run_id=run.run_id,
        task_id=task.task_id,
        attempt=last.attempt + 1,
        kind=AttemptKind.CONTINUE,
        base_commit=base,
        thread_id=last.thread_id,
        data=data,
    )


def _queue(
    house: House,
    run: RunRecord,
    task: TaskRecord,
    attempt: AttemptRecord,
    call: ContinueCall,
    session: Session,
    hold: str | None,
) -> None:
    """Record all of it at once: the attempt, the task and those that waited for it, the run."""
    ledger = house.ledger
    added = [one for one in call.verification_commands if one not in task.contract.verification_commands]
    checks = [*task.contract.verification_commands, *added]
    contract = task.contract.model_copy(update={"verification_commands": checks})
    plan = RunPlan.model_validate(run.options)
    options = plan.model_copy(update={"hold_reason": hold} if hold else {})
    # The bounds of the session that asks now hold from now on; a terminal has none of its own to set.
    bounds = run.session if session.profile is None else session.wire()
    detail: JsonObject = {"attempt": attempt.attempt, "thread": session.thread_id}
    with ledger.transaction():
        ledger.start_attempt(attempt)
        ledger.update_task(run.run_id, task.task_id, contract=contract)
        for name in (task.task_id, *_waiting_for(ledger.tasks(run.run_id), task.task_id)):
            ledger.update_task(
                run.run_id,
                name,
                state=TaskState.QUEUED,
                verdict=None,
                reasons=[],
                outcome=TaskOutcome(),
            )
        ledger.update_run(
            run.run_id,
            state=RunState.QUEUED,
            note=None,
            options=options.wire(),
            session=bounds,
            event=NewEvent(kind="run.continued", task_id=task.task_id, data=detail),
        )


def _waiting_for(tasks: list[TaskRecord], name: str) -> list[str]:
    """Skipped tasks that depend on this one, directly or through each other."""
    reached = {name}
    for _ in tasks:
        for task in tasks:
            if task.state is TaskState.SKIPPED and reached & set(task.depends_on):
                reached.add(task.task_id)
    return [task.task_id for task in tasks if task.task_id in reached - {name}]
