"""Lands what an isolated worker did, by the engine, and checks a change of the session's own against git."""

from __future__ import annotations

from baton.contract.calls import ControlAction, ControlCall, WaitCall
from baton.contract.errors import BatonError, InvalidInput
from baton.contract.states import Integration
from baton.contract.workflow import Step, StepState
from baton.engine.blocking import blocking
from baton.ledger.workflow_records import WorkflowStepRecord
from baton.workflow.doors import Doors, ground_of
from baton.workflow.ground import SHOWN, out_of_scope
from baton.workflow.history import Job
from baton.workflow.machine import Event
from baton.workflow.outcome import Outcome
from baton.workflow.work import seconds_left


def begin_landing(doors: Doors, job: Job) -> WorkflowStepRecord:
    """Write down that what was made last is landed."""
    made = job.made
    assert made is not None, "apply follows what was made"
    step = WorkflowStepRecord(
        workflow_id=job.id,
        step=Step.APPLY,
        round=job.workflow.round,
        binding=job.terms.bindings[Step.APPLY].wire(),
        state=StepState.RUNNING,
        run_id=made.run_id,
    )
    return doors.house.ledger.add_workflow_step(step)


async def land(doors: Doors, job: Job, step: WorkflowStepRecord, until: float) -> Outcome | None:
    """Have the engine merge the change onto the workspace as it is now; None while it does."""
    made = job.made
    if made is None or made.run_id is None:
        return Outcome(Event.BROKEN, "no isolated worker made it; bind apply to host with a replan")
    ledger, run_id = doors.house.ledger, made.run_id
    (task,) = ledger.tasks(run_id)
    landed = (Integration.APPLIED, Integration.NOTHING)
    if task.outcome.integration not in landed:
        call = ControlCall(run_id=run_id, action=ControlAction.INTEGRATE, tasks=[task.task_id])
        try:
            await doors.engine.control_run(call, doors.session)
        except BatonError as error:
            return Outcome(Event.BROKEN, error.message)
        await doors.engine.wait_run(WaitCall(run_id=run_id, wait_seconds=seconds_left(until)), doors.session)
        if not ledger.run(run_id).state.at_rest:
            return None
        (task,) = ledger.tasks(run_id)
    if task.outcome.integration not in landed:
        return Outcome(Event.NOT_APPLIED, f"it does not apply: {task.outcome.detail or 'it was held'}"[:400])
    return await blocking(_landed, doors, job, made)


def _landed(doors: Doors, job: Job, made: WorkflowStepRecord) -> Outcome:
    ground = ground_of(doors.house, job.workflow)
    now = ground.snapshot(f"applied-{made.number}")
    missing = ground.holds(now.commit, str(made.base), str(made.result))
    if missing is not None:
        return Outcome(Event.NOT_APPLIED, f"the workspace was changed meanwhile: {missing}")
    return Outcome(Event.APPLIED, None, {"base": made.base, "result": now.commit, "tree": now.tree})


def applied_by_host(doors: Doors, job: Job, commit: str | None) -> Outcome:
    """Check that a commit of the session's holds what was made. Raises `InvalidInput` when it does not."""
    made = job.made
    assert made is not None and made.base is not None and made.result is not None
    if commit is None:
        raise InvalidInput(
            "commit: an applied change is shown by the commit that holds it; commit it and give its id, or"
            " reject it with a reason"
        )
    ground = ground_of(doors.house, job.workflow)
    found = ground.commit_given(commit, _head_before(job, made))
    now = ground.snapshot(f"applied-{made.number}")
    missing = ground.committed(found, made.base, made.result, now.commit)
    if missing is not None:
        raise InvalidInput(f"commit: {found[:12]}: {missing}; apply the change, or reject it with a reason")
    missing = ground.holds(now.commit, made.base, made.result)
    if missing is not None:
        raise InvalidInput(f"commit: {found[:12]} holds the change, but the files do not: {missing}")
    fields: dict[str, object] = {
        "commit": found,
        "base": made.base,
        "result": now.commit,
        "tree": now.tree,
    }
    return Outcome(Event.APPLIED, None, fields)


def no_longer_applies(doors: Doors, job: Job) -> tuple[WorkflowStepRecord, Outcome] | None:
    """That a change that waits to be applied does not fit the workspace as it is now; None when it does."""
    made = job.made
    if made is None or made.base is None or made.result is None:
        return None
    ground = ground_of(doors.house, job.workflow)
    now = ground.snapshot()
    why = ground.fits(made.base, made.result, now.commit)
    if why is None or ground.holds(now.commit, made.base, made.result) is None:
        return None
    step = WorkflowStepRecord(
        workflow_id=job.id,
        step=Step.APPLY,
        round=job.workflow.round,
        binding=job.terms.bindings[Step.APPLY].wire(),
    )
    return step, Outcome(Event.NOT_APPLIED, f"the workspace was changed, and it does not apply now: {why}")


def _head_before(job: Job, made: WorkflowStepRecord) -> str | None:
    """The person's HEAD when the change was begun, else the last commit that was found, or at the start."""
    head = made.request.get("head")
    if isinstance(head, str):
        return head
    earlier = [one.commit for one in job.steps if one.number < made.number and one.commit is not None]
    return earlier[-1] if earlier else job.workflow.base_head


def made_by_host(doors: Doors, job: Job, commit: str | None) -> Outcome:
    """What the session changed since the workflow last knew the workspace.

    Raises `InvalidInput` when that is nothing, leaves the scope, or the commit given is not that.
    """
    ground = ground_of(doors.house, job.workflow)
    now = ground.snapshot(f"made-{len(job.steps) + 1}")
    before = job.ground
    changed = ground.changed(before, now.commit)
    if not changed:
        raise InvalidInput(
            "nothing in the workspace changed since the workflow last looked; change it, then record"
        )
    refused = out_of_scope(changed, job.terms.allowed_files)
    if refused:
        raise InvalidInput(f"the change leaves the scope: {'; '.join(refused[:SHOWN])}")
    fields: dict[str, object] = {"base": before, "result": now.commit, "tree": now.tree}
    if commit is not None:
        earlier = [one.commit for one in job.steps if one.commit is not None]
        found = ground.commit_given(commit, earlier[-1] if earlier else job.workflow.base_head)
        missing = ground.committed(found, before, now.commit, now.commit)
        if missing is not None:
            raise InvalidInput(f"commit: {found[:12]}: {missing}")
        fields["commit"] = found
    return Outcome(Event.DONE, None, fields)
