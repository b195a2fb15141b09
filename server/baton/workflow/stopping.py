"""Stops what a step has at work; what it made is kept."""

from __future__ import annotations

from contextlib import suppress

from baton.contract.calls import ControlAction, ControlCall
from baton.contract.errors import NotFound
from baton.contract.workflow import StepState
from baton.engine.blocking import blocking
from baton.ledger.workflow_records import WorkflowStepRecord
from baton.workflow.doors import Doors


def label_of(step: WorkflowStepRecord) -> str:
    """By which a step's consultation and run are found again."""
    return f"{step.workflow_id}/{step.number}"


async def stop(doors: Doors, step: WorkflowStepRecord) -> None:
    """End its consultation and its run, where they are at work. Idempotent."""
    ledger = doors.house.ledger
    asked, run_id = step.consultation_id, step.run_id or ledger.run_labelled(label_of(step))
    with suppress(NotFound):
        if step.review_id is not None:
            asked = ledger.review(step.review_id).consultation_id
        if asked is not None and not ledger.consultation(asked).state.at_rest:
            await blocking(ledger.ask_to_cancel, asked)
    with suppress(NotFound):
        if run_id is not None and not ledger.run(run_id).state.at_rest:
            call = ControlCall(run_id=run_id, action=ControlAction.CANCEL)
            await doors.engine.control_run(call, doors.session)


async def stop_if_dropped(doors: Doors, step: WorkflowStepRecord) -> None:
    """For what was started while another session cancelled."""
    ledger = doors.house.ledger
    if ledger.workflow_step(step.workflow_id, step.number).state is StepState.DROPPED:
        await stop(doors, ledger.workflow_step(step.workflow_id, step.number))
