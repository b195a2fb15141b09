"""Which task runs when: after its predecessors are verified, on the merge of their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from baton.contract.errors import BatonError
from baton.contract.evidence import AttemptResult, CheckResult, CheckStatus, Decision
from baton.contract.states import TaskState, Verdict
from baton.contract.tree import show_path
from baton.engine.attempt import attempt, finish, is_captured
from baton.engine.blocking import blocking
from baton.engine.climb import climb, trouble_of
from baton.engine.context import RunContext
from baton.engine.followup import AttemptKind, FollowUp, follow_up
from baton.engine.pausing import HeldBack, note_limit, until_free
from baton.engine.places import worker_place
from baton.engine.plan import PlannedRoute
from baton.engine.route import inherited, route_of, with_route
from baton.engine.stop import StopReason
from baton.engine.usage import total_usage
from baton.ledger.records import AttemptRecord, JsonObject, TaskRecord
from baton.workspace.git import Git
from baton.workspace.locate import locate

STATE_AFTER = {
    Verdict.CANCELLED: TaskState.CANCELLED,
    Verdict.INTERRUPTED: TaskState.INTERRUPTED,
}


NEW_THREAD = (AttemptKind.FRESH, AttemptKind.ESCALATION)

ANSWERS = ("worker.command", "worker.patch", "worker.message")
"""Events that come from a model which has read what it was told."""


class Skipped(Exception):
    """Raised inside a task's lane when it cannot start; the message is the reason."""


async def run_tasks(ctx: RunContext) -> None:
    """Carry every task that is not at rest to rest. One that fails neither blocks nor discards another."""
    tasks = ctx.house.ledger.tasks(ctx.run_id)
    finished = {task.task_id: anyio.Event() for task in tasks}
    slots = anyio.CapacityLimiter(ctx.plan.max_parallel)
    async with anyio.create_task_group() as lanes:
        for task in tasks:
            if task.state.at_rest:
                finished[task.task_id].set()
            else:
                lanes.start_soon(_lane, ctx, task, finished, slots)


async def _lane(
    ctx: RunContext, task: TaskRecord, finished: dict[str, anyio.Event], slots: anyio.CapacityLimiter
) -> None:
    try:
        for predecessor in task.depends_on:
            await finished[predecessor].wait()
        in_the_way = _in_the_way(ctx, task)
        if in_the_way is not None and not ctx.stop.asked:
            _rest(ctx, task, TaskState.SKIPPED, reasons=[in_the_way])
            return
        async with slots, worker_place(ctx, task.task_id):
            await _run_task(ctx, task)
    finally:
        finished[task.task_id].set()


async def _run_task(ctx: RunContext, task: TaskRecord) -> None:
    if ctx.stop.asked:
        _put_aside(ctx, task)
        return
    try:
        await _until_free(ctx, task)
        if ctx.stop.asked:
            _put_aside(ctx, task)
            return
        record = await _next_attempt(ctx, task)
        result = await _carry(ctx, task, record)
        result, following = await _following(ctx, record, result)
        while following is not None:
            await _wait(ctx, following)
            await _until_free(ctx, task, following.route)
            if ctx.stop.asked:
                _put_aside(ctx, task, result)
                return
            record = _start(ctx, task, _after(ctx, task, record, result, following))
            result = await _carry(ctx, task, record)
            result, following = await _following(ctx, record, result)
    except HeldBack as limited:
        _rest(ctx, task, TaskState.INTERRUPTED, verdict=Verdict.INTERRUPTED, reasons=[limited.message])
        return
    except Skipped as why:
        _rest(ctx, task, TaskState.SKIPPED, reasons=[str(why)])
        return
    except BatonError as error:
        # Baton's own surroundings failed this task; the others go on.
        if _has_worked(ctx, task):
            reason = f"{await blocking(_what_is_wrong, ctx, error)}; what was done is kept and can be resumed"
            _rest(ctx, task, TaskState.INTERRUPTED, verdict=Verdict.INTERRUPTED, reasons=[reason])
        else:
            _rest(ctx, task, TaskState.DONE, verdict=Verdict.FAILED, reasons=[error.message])
        return
    settle(ctx, task, result)


def _has_worked(ctx: RunContext, task: TaskRecord) -> bool:
    """Whether a worker was at work for the task: from then on a fault of the surroundings loses nothing."""
    past = ctx.house.ledger.attempts(ctx.run_id, task.task_id)
    return any(attempt.step != "planned" for attempt in past)


def _what_is_wrong(ctx: RunContext, error: BatonError) -> str:
    """The reason as the person knows it: a workspace that is gone shows itself by odd errors of git."""
    workspace = ctx.run.workspace
    try:
        locate(Path(workspace), Git.find())
    except BatonError as gone:
        return gone.message
    if ctx.base is not None:
        try:
            ctx.repo.tree_of(ctx.base.commit)
        except BatonError:
            return f"{workspace} is not on the repository any more that the run began with"
    return error.message


async def _carry(ctx: RunContext, task: TaskRecord, record: AttemptRecord) -> AttemptResult:
    if record.result is not None:
        return record.result
    return await (finish if is_captured(record) else attempt)(ctx, task, record)


async def _following(
    ctx: RunContext, record: AttemptRecord, result: AttemptResult
) -> tuple[AttemptResult, FollowUp | None]:
    """What follows an attempt, and its result with that decision written down."""
    past = ctx.house.ledger.attempts(ctx.run_id, record.task_id)
    following = follow_up(result, [AttemptKind(attempt.kind) for attempt in past])
    if following is not None:
        trouble = trouble_of(result)
        decision = Decision(trouble=str(trouble or "cut_short"), action="retry", why=following.why)
    else:
        climbed = await climb(ctx, result, past)
        if climbed is None:
            return result, None
        decision = climbed.decision
        note_limit(ctx, route_of(ctx.plan, record).model, result, decision)
        if climbed.route is not None:
            following = FollowUp(AttemptKind.ESCALATION, decision.why, route=climbed.route)
        elif decision.action == "wait":
            following = FollowUp(AttemptKind.WAIT, decision.why, wait_seconds=decision.wait_seconds or 0.0)
    result = result.model_copy(update={"decision": decision})
    ctx.house.ledger.update_attempt(
        ctx.run_id,
        record.task_id,
        record.attempt,
        result=result,
        event=ctx.event(
            "attempt.decided",
            record.task_id,
            record.attempt,
            trouble=decision.trouble,
            action=decision.action,
            why=decision.why,
        ),
    )
    return result, following


async def _until_free(ctx: RunContext, task: TaskRecord, route: PlannedRoute | None = None) -> None:
    """Wait while the model of the next attempt is not to be asked. Raises `HeldBack`."""
    if route is None:
        past = ctx.house.ledger.attempts(ctx.run_id, task.task_id)
        if past and _needs_no_turn(past[-1]):
            return
        route = route_of(ctx.plan, past[-1]) if past else ctx.plan.routes[task.task_id]
    await until_free(ctx, task.task_id, route.model)


async def _wait(ctx: RunContext, following: FollowUp) -> None:
    """Wait as long as the service needs, at most until the run is told to stop."""
    with anyio.move_on_after(following.wait_seconds):
        await ctx.stop.wait()


def _told(task: TaskRecord, check: CheckResult) -> str:
    """What the worker learns of a failing check."""
    if task.contract.hidden_files:
        # A check may read what is hidden, and the worker has a say in what it prints.
        return (
            f"{check.detail or check.status.value} (its output is not shown: the task hides files from you)"
        )
    return check.tail or check.detail or ""


def _after(
    ctx: RunContext, task: TaskRecord, last: AttemptRecord, result: AttemptResult, following: FollowUp
) -> AttemptRecord:
    """The attempt that goes on from where the last one left its tree."""
    data: JsonObject = {"why": following.why, "treeFrom": result.evidence.commit, **inherited(last)}
    if following.route is not None:
        data |= with_route(following.route)
    if following.kind in (AttemptKind.REPAIR, AttemptKind.ESCALATION):
        failing = [check for check in result.evidence.checks if check.status is not CheckStatus.PASSED]
        data["failures"] = [[check.command, _told(task, check)] for check in failing]
    return AttemptRecord(
        run_id=last.run_id,
        task_id=last.task_id,
        attempt=last.attempt + 1,
        kind=following.kind,
        base_commit=last.base_commit,
        thread_id=None if following.kind in NEW_THREAD else result.thread_id,
        data=data,
    )


def _start(ctx: RunContext, task: TaskRecord, record: AttemptRecord) -> AttemptRecord:
    event = ctx.event(
        "attempt.planned", task.task_id, record.attempt, attemptKind=record.kind, why=record.data.get("why")
    )
    with ctx.house.ledger.transaction():
        ctx.house.ledger.update_task(ctx.run_id, task.task_id, state=TaskState.WORKING)
        return ctx.house.ledger.start_attempt(record, event=event)


def settle(ctx: RunContext, task: TaskRecord, result: AttemptResult) -> None:
    """Record the attempt that counts, with the state that its verdict means."""
    state = STATE_AFTER.get(result.verdict, TaskState.DONE)
    spent = [past.result.usage for past in ctx.house.ledger.attempts(ctx.run_id, task.task_id) if past.result]
    result = result.model_copy(update={"usage": total_usage(spent)})
    _rest(ctx, task, state, verdict=result.verdict, reasons=result.reasons, result=result)


def _put_aside(ctx: RunContext, task: TaskRecord, result: AttemptResult | None = None) -> None:
    cancelled = ctx.stop.reason is StopReason.CANCELLED
    state = TaskState.CANCELLED if cancelled else TaskState.INTERRUPTED
    verdict = Verdict.CANCELLED if cancelled else Verdict.INTERRUPTED
    _rest(ctx, task, state, verdict=verdict, reasons=[ctx.stop.detail], result=result)


def _rest(
    ctx: RunContext,
    task: TaskRecord,
    state: TaskState,
    *,
    reasons: list[str],
    verdict: Verdict | None = None,
    result: AttemptResult | None = None,
) -> None:
    # Without a new result the last one stays.
    known: dict[str, Any] = {} if result is None else {"result": result}
    ctx.house.ledger.update_task(
        ctx.run_id,
        task.task_id,
        state=state,
        event=ctx.event(f"task.{state}", task.task_id, verdict=verdict.value if verdict else None),
        reasons=reasons,
        verdict=verdict,
        **known,
    )


async def _next_attempt(ctx: RunContext, task: TaskRecord) -> AttemptRecord:
    """The attempt to carry on or to begin. Raises `Skipped` when a predecessor stands in the way."""
    ledger = ctx.house.ledger
    past = ledger.attempts(ctx.run_id, task.task_id)
    last = past[-1] if past else None
    if last is not None and _needs_no_turn(last):
        return last
    if last is not None and _waits_to_begin(last):
        return last
    base = last.base_commit if last is not None else await _base_for(ctx, task)
    if last is None:
        planned = AttemptRecord(run_id=ctx.run_id, task_id=task.task_id, attempt=1, base_commit=base)
        return _start(ctx, task, planned)
    data: JsonObject = {"why": "the session ended", **inherited(last)}
    if last.commit is not None:
        data["treeFrom"] = last.commit
    if last.kind == AttemptKind.CONTINUE:
        # It may never have reached the worker.
        data |= {name: last.data[name] for name in ("message", "fromWorkspace") if name in last.data}
    thread_id = last.thread_id if _has_answered(ctx, task) else None
    planned = AttemptRecord(
        run_id=ctx.run_id,
        task_id=task.task_id,
        attempt=last.attempt + 1,
        kind=AttemptKind.FRESH if thread_id is None else AttemptKind.RECOVERY,
        base_commit=base,
        thread_id=thread_id,
        data=data,
    )
    return _start(ctx, task, planned)


def _waits_to_begin(record: AttemptRecord) -> bool:
    """Whether the attempt was planned by a session and nothing of it has been done."""
    return record.kind == AttemptKind.CONTINUE and record.step == "planned" and record.commit is None


def _has_answered(ctx: RunContext, task: TaskRecord) -> bool:
    """Whether the worker has read its brief: of a turn that is cut before, its thread may keep nothing."""
    events = ctx.house.ledger.events(ctx.run_id, task_id=task.task_id)
    return any(event.kind in ANSWERS for event in events)


def _needs_no_turn(record: AttemptRecord) -> bool:
    """Whether only the verdict of the attempt, or nothing at all, is missing."""
    return _is_judged(record) or (is_captured(record) and not _was_cut(record))


def _is_judged(record: AttemptRecord) -> bool:
    """Whether the attempt came to a verdict of its own before its runner died."""
    return record.result is not None and record.result.verdict not in STATE_AFTER


def _was_cut(record: AttemptRecord) -> bool:
    """Whether the attempt's turn did not come to its own end."""
    return "failure" in record.data or "usage" not in record.data


def _in_the_way(ctx: RunContext, task: TaskRecord) -> str | None:
    """Why the task cannot start, now that all it depends on is at rest; None when it can."""
    if ctx.house.ledger.attempts(ctx.run_id, task.task_id):
        return None  # it has started before, on what was verified then
    for name in task.depends_on:
        before = ctx.house.ledger.task(ctx.run_id, name)
        if before.verdict is not Verdict.VERIFIED or before.result is None:
            why = f": {before.reasons[0]}" if before.reasons else ""
            return f"its predecessor {name} is not verified ({before.verdict or before.state}){why}"
    return None


async def _base_for(ctx: RunContext, task: TaskRecord) -> str:
    """The commit a task starts from: the run's snapshot with its predecessors' results."""
    assert ctx.base is not None
    base = ctx.base.commit
    for name in task.depends_on:
        before = ctx.house.ledger.task(ctx.run_id, name)
        commit = before.result.evidence.commit if before.result is not None else None
        if commit is None:
            continue
        ref = ctx.ref("bases", task.task_id, name)
        merged = await blocking(
            ctx.repo.merge, ctx.base.commit, base, commit, f"{name} for {task.task_id}", ref
        )
        if merged.commit is None:
            paths = ", ".join(show_path(conflict.path) for conflict in merged.conflicts[:5])
            raise Skipped(f"the results of its predecessors do not fit together: {paths}")
        base = merged.commit
    return base
