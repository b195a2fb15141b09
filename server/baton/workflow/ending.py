"""Ends workflows: cancelled by a person, or forgotten when their time is over."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from baton.consult.records import delete
from baton.contract.errors import BatonError
from baton.contract.workflow import StepState, WorkflowState
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.ledger.consultations import DAY
from baton.policy.load import load_policy
from baton.workflow.doors import Doors
from baton.workflow.ground import Ground
from baton.workflow.history import Job
from baton.workflow.machine import Event
from baton.workflow.outcome import move
from baton.workflow.stopping import stop


async def cancel(doors: Doors, job: Job) -> None:
    """Stop what is at work and end the workflow; everything that came is kept. Idempotent."""
    if not job.workflow.state.ended:
        await blocking(_close, doors, job)
    job = await blocking(Job.read, doors.house, job.id)
    if job.workflow.state is not WorkflowState.CANCELLED:
        return
    # Also of one that was cancelled before: whoever did may not have come to it.
    for step in job.steps:
        await stop(doors, step)


def _close(doors: Doors, job: Job) -> None:
    ledger = doors.house.ledger
    with ledger.transaction():
        workflow = ledger.workflow(job.id)
        if workflow.state.ended:
            return
        move(doors.house, workflow, Event.CANCELLED, "cancelled; what was made is kept")
        for one in ledger.workflow_steps(job.id, states=[StepState.PREVIEWED, StepState.RUNNING]):
            ledger.change_workflow_step(
                job.id, one.number, state=StepState.DROPPED, token=None, detail="cancelled"
            )


@dataclass
class Forgotten:
    """What was forgotten, or with a dry run would be."""

    workflows: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def forget_old(house: House, *, dry_run: bool = False, at: float | None = None) -> Forgotten:
    """Forget workflows that ended longer ago than the person's `consult.keep_days`, with their consultations.

    One that has not ended is kept, however old it is.
    """
    done = Forgotten()
    days = load_policy(house.codex_home, None).consult.keep_days
    before = (time.time() if at is None else at) - days * DAY
    for workflow in house.ledger.workflows(-1):
        if workflow.ended_at is None or workflow.ended_at >= before:
            continue
        try:
            if not dry_run:
                forget(house, Job.read(house, workflow.workflow_id))
            done.workflows.append(workflow.workflow_id)
        except (BatonError, OSError) as error:
            done.faults.append(f"{workflow.workflow_id}: {error}")
    return done


def forget(house: House, job: Job) -> None:
    """Delete the record with its consultations and what is kept under its name."""
    workspace = Path(job.workflow.workspace)
    if workspace.is_dir():
        Ground.open(house, workspace, job.id).repo.forget_run(job.id)
    for step in job.steps:
        if step.consultation_id is not None:
            delete(house, step.consultation_id)
    house.ledger.forget_workflow(job.id)
    (house.state.root / "logs" / f"{job.id}.log").unlink(missing_ok=True)
    for left in house.state.scratch.glob(f"{job.id}-*"):
        shutil.rmtree(left, ignore_errors=True)
