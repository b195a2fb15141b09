"""How a try at a step ended, and the one place where a workflow moves."""

from __future__ import annotations

from dataclasses import dataclass, field

from baton.contract.workflow import StepState
from baton.engine.house import House
from baton.ledger.workflow_records import WorkflowRecord, WorkflowStepRecord
from baton.workflow.machine import Event, Position, advance


@dataclass(frozen=True)
class Outcome:
    """What came of a step: the event for the workflow, and what is recorded with the step."""

    event: Event
    detail: str | None = None
    fields: dict[str, object] = field(default_factory=dict)

    @property
    def state(self) -> StepState:
        failed = (Event.BROKEN, Event.NOT_APPLIED, Event.REJECTED)
        return StepState.FAILED if self.event in failed else StepState.DONE


def finish(house: House, workflow: WorkflowRecord, step: WorkflowStepRecord, outcome: Outcome) -> None:
    """Close a running step and move the workflow, in one transaction.

    Raises `WrongState` when the workflow was cancelled or moved meanwhile; the step is closed by whoever did.
    """
    with house.ledger.transaction():
        house.ledger.change_workflow_step(
            workflow.workflow_id,
            step.number,
            StepState.RUNNING,
            state=outcome.state,
            detail=outcome.detail,
            **outcome.fields,
        )
        move(house, workflow, outcome.event, outcome.detail)


def add_finished(
    house: House, workflow: WorkflowRecord, step: WorkflowStepRecord, outcome: Outcome
) -> WorkflowStepRecord:
    """Record a step that is done by being recorded, and move the workflow, in one transaction."""
    with house.ledger.transaction():
        made = step.model_copy(update={"state": outcome.state, "detail": outcome.detail, **outcome.fields})
        added = house.ledger.add_workflow_step(made)
        move(house, workflow, outcome.event, outcome.detail)
        return added


def move(house: House, workflow: WorkflowRecord, event: Event, note: str | None = None) -> WorkflowRecord:
    """Move the workflow by an event. Raises `WrongState` when it is elsewhere by now."""
    after = advance(Position(workflow.state, workflow.round), event)
    return house.ledger.move_workflow(
        workflow.workflow_id, workflow.state, state=after.state, round=after.round, note=note
    )
