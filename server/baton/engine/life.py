"""The life of one run, top to bottom: snapshot, tasks, integration, rest."""

from __future__ import annotations

from collections.abc import Collection

import anyio

from baton.contract.evidence import TaskOutcome
from baton.contract.states import Integration, RunState, TaskState, Verdict
from baton.contract.task import IntegrateMode
from baton.contract.tree import Snapshot
from baton.engine.blocking import blocking
from baton.engine.context import RunContext
from baton.engine.integrate import integrate
from baton.engine.schedule import run_tasks
from baton.engine.stop import StopReason
from baton.ledger.locks import is_held
from baton.ledger.records import RunRecord, TaskRecord

OWNER_INTERVAL = 0.1
"""Seconds between two looks whether anybody has come to take a finished run."""

NOT_RECOVERED = "not recovered yet: "
"""How the note begins of a run whose runner died and that cannot be recovered now."""


async def live(ctx: RunContext) -> RunRecord:
    """Carry a queued run to rest; what is done already is not done again."""
    ctx.run = ctx.house.ledger.update_run(
        ctx.run_id, expect=[RunState.QUEUED], state=RunState.RUNNING, event=ctx.event("run.running")
    )
    await _snapshot(ctx)
    await run_tasks(ctx)
    if not ctx.stop.asked:
        await _integrate(ctx)
    return rest(ctx)


async def integrate_named(ctx: RunContext, names: Collection[str]) -> RunRecord:
    """Integrate results of a run at rest that somebody asks for, by name or all that are verified."""
    await _snapshot(ctx)
    tasks = [task for task in ctx.house.ledger.tasks(ctx.run_id) if _can_land(task, names)]
    if tasks:
        ctx.run = ctx.house.ledger.update_run(
            ctx.run_id, state=RunState.INTEGRATING, event=ctx.event("run.integrating")
        )
        await integrate(ctx, tasks)
    return rest(ctx)


async def _snapshot(ctx: RunContext) -> None:
    """The state that all tasks start from; taken once in the life of a run."""
    ref = ctx.ref("base")
    known = await blocking(ctx.repo.resolve, ref)
    if known is not None:
        tree = await blocking(ctx.repo.tree_of, known)
        submodules = await blocking(ctx.repo.submodules, known)
        ctx.base = Snapshot(commit=known, tree=tree, head=ctx.run.head_commit, submodules=submodules)
        return
    taken = await blocking(ctx.repo.snapshot, ref, ctx.run_id)
    ctx.base = taken
    ctx.run = ctx.house.ledger.update_run(
        ctx.run_id,
        base_commit=taken.commit,
        head_commit=taken.head,
        event=ctx.event("run.snapshot", commit=taken.commit, notes=list(taken.notes)),
    )


async def _integrate(ctx: RunContext) -> None:
    tasks = _changed(ctx, [task for task in ctx.house.ledger.tasks(ctx.run_id) if _can_land(task, ())])
    hold = ctx.plan.hold_reason
    if hold is None and ctx.run.integrate is IntegrateMode.HOLD:
        hold = "the call asked to hold the result"
    if hold is None and ctx.run.background and not is_held(ctx.house.state.owner_lock(ctx.run_id)):
        hold = "it ended in the background, and nobody was there to take it"
    if hold is not None:
        for task in tasks:
            outcome = TaskOutcome(integration=Integration.HELD, detail=hold)
            ctx.house.ledger.update_task(ctx.run_id, task.task_id, outcome=outcome)
        return
    if tasks and await _owned(ctx):
        ctx.run = ctx.house.ledger.update_run(
            ctx.run_id, state=RunState.INTEGRATING, event=ctx.event("run.integrating")
        )
        await integrate(ctx, tasks)


def _changed(ctx: RunContext, tasks: Collection[TaskRecord]) -> list[TaskRecord]:
    """Those with a change; the others, such as explorations, are settled: they have nothing to land."""
    for task in tasks:
        if not _has_change(task) and task.outcome.integration is None:
            outcome = TaskOutcome(integration=Integration.NOTHING)
            ctx.house.ledger.update_task(ctx.run_id, task.task_id, outcome=outcome)
    return [task for task in tasks if _has_change(task)]


async def _owned(ctx: RunContext) -> bool:
    """Whether somebody is there to take the result of a run in the foreground.

    Without an owner, waits for the next one or for the stop that follows the grace time: nothing is applied
    while nobody is there, not even within that time.
    """
    while not (ctx.run.background or is_held(ctx.house.state.owner_lock(ctx.run_id))):
        if ctx.stop.asked:
            return False
        await anyio.sleep(OWNER_INTERVAL)
    return True


def _can_land(task: TaskRecord, named: Collection[str]) -> bool:
    """Whether a result may be applied: verified, or asked for by name and without a scope violation."""
    if task.result is None or task.result.evidence.commit is None:
        return False
    if task.outcome.integration in (Integration.APPLIED, Integration.DISCARDED):
        return False
    if task.task_id in named:
        return not task.result.evidence.scope.violations
    return not named and task.verdict is Verdict.VERIFIED


def is_kept_back(task: TaskRecord) -> bool:
    """Whether the task has a change that did not land and was not discarded."""
    landed = (Integration.APPLIED, Integration.NOTHING, Integration.DISCARDED)
    return _has_change(task) and task.outcome.integration not in landed


def _has_change(task: TaskRecord) -> bool:
    return task.result is not None and bool(task.result.evidence.changes)


def rest(ctx: RunContext) -> RunRecord:
    """Bring the run to the state of rest that its tasks mean."""
    tasks = ctx.house.ledger.tasks(ctx.run_id)
    state, integration = resting_state(tasks, ctx.stop.reason)
    note = ctx.stop.detail if ctx.stop.asked else None
    return ctx.house.ledger.update_run(
        ctx.run_id, state=state, integration=integration, note=note, event=ctx.event(f"run.{state}")
    )


def resting_state(
    tasks: Collection[TaskRecord], stopped: StopReason | None
) -> tuple[RunState, Integration | None]:
    """State and integration of a run whose tasks are as given. Pure.

    `held` means that some change is kept that did not land and that nobody has decided about.
    """
    outcomes = [task.outcome.integration for task in tasks if task.outcome.integration is not None]
    integration = next(
        (
            kind
            for kind in (Integration.CONFLICT, Integration.HELD, Integration.APPLIED, Integration.NOTHING)
            if kind in outcomes
        ),
        None,
    )
    if stopped is StopReason.CANCELLED:
        return RunState.CANCELLED, integration
    if stopped is not None or any(task.state is TaskState.INTERRUPTED for task in tasks):
        return RunState.INTERRUPTED, integration
    if any(is_kept_back(task) for task in tasks):
        return RunState.HELD, integration or Integration.HELD
    return RunState.DONE, integration
