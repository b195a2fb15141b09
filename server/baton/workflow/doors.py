"""The services that a workflow's steps go through."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from baton.consult.service import ConsultService
from baton.contract.session import Session
from baton.engine.house import House
from baton.engine.service import Service
from baton.ledger.locks import FileLock
from baton.ledger.workflow_records import WorkflowRecord
from baton.review.confirm import Person, nobody
from baton.review.service import ReviewService
from baton.workflow.ground import Ground
from baton.workflow.words import TOOL, Words


@dataclass(frozen=True)
class Doors:
    """Consultation, review and the engine, over one open house, and who asks."""

    consulting: ConsultService
    reviewing: ReviewService
    engine: Service
    session: Session
    person: Person = nobody
    words: Words = TOOL

    @property
    def house(self) -> House:
        return self.consulting.house


def ground_of(house: House, workflow: WorkflowRecord) -> Ground:
    """The workspace of a workflow. Raises `BatonError` when it is not there any more."""
    return Ground.open(house, Path(workflow.workspace), workflow.workflow_id)


def workflow_lock(house: House, workflow_id: str) -> FileLock:
    """Held by whoever moves the workflow."""
    return FileLock(house.state.locks / f"workflow-{workflow_id}.lock")


def tests_lock(house: House, workflow_id: str) -> Path:
    """The lock that the process which runs tests holds for life."""
    return house.state.locks / f"workflow-{workflow_id}-tests.lock"
