"""Workflows in the ledger: where each is, and every try at a step."""

from __future__ import annotations

from collections.abc import Sequence

from baton.contract.errors import NotFound, WrongState
from baton.contract.workflow import Step, StepState, WorkflowState
from baton.ledger.base import Part, now
from baton.ledger.tables import WORKFLOW_STEPS, WORKFLOWS
from baton.ledger.workflow_records import WorkflowRecord, WorkflowStepRecord

_LISTED = "`baton workflow list` lists them"


class Workflows(Part):
    """Workflows of one ledger."""

    def begin_workflow(self, workflow: WorkflowRecord) -> WorkflowRecord:
        made = workflow.model_copy(update={"created_at": now(), "updated_at": now()})
        with self.db.transaction() as db:
            WORKFLOWS.insert(db, made)
        return made

    def workflow(self, workflow_id: str) -> WorkflowRecord:
        """Raises `NotFound`."""
        rows = self.db.read(WORKFLOWS.select_one(), [workflow_id])
        if not rows:
            raise NotFound(f"no workflow {workflow_id[:40]!r}; {_LISTED}")
        return WORKFLOWS.read(rows[0])

    def workflow_named(self, beginning: str) -> WorkflowRecord:
        """The one whose id begins so. Raises `NotFound`, also when it is not one alone."""
        rows = self._many(
            WORKFLOWS, "substr(workflow_id, 1, ?) = ?", [len(beginning), beginning, 2], "1 LIMIT ?"
        )
        if len(rows) != 1:
            what = "no workflow" if not rows else "more than one workflow"
            raise NotFound(f"{what} {beginning[:40]!r}; {_LISTED}")
        return rows[0]

    def workflows(self, limit: int = 20, offset: int = 0) -> list[WorkflowRecord]:
        """The newest first; -1 for all."""
        order = "created_at DESC, workflow_id LIMIT ? OFFSET ?"
        return self._many(WORKFLOWS, "1", [limit, offset], order)

    def move_workflow(
        self, workflow_id: str, expect: WorkflowState | None = None, **fields: object
    ) -> WorkflowRecord:
        """Change it. Raises `NotFound`, and `WrongState` when it is elsewhere than expected."""
        with self.db.transaction() as db:
            old = self.workflow(workflow_id)
            if expect is not None and old.state is not expect:
                raise WrongState(f"workflow {workflow_id} is {old.state.value} now, no longer {expect.value}")
            new = WORKFLOWS.revised(old, {**fields, "updated_at": now()})
            if new.state.ended and new.ended_at is None:
                new = WORKFLOWS.revised(new, {"ended_at": now()})
            WORKFLOWS.update(db, old, new)
            return new

    def add_workflow_step(self, step: WorkflowStepRecord) -> WorkflowStepRecord:
        """Record a try at a step; a preview that was shown before is dropped."""
        with self.db.transaction() as db:
            db.execute(
                "UPDATE workflow_steps SET state = ?, token = NULL, ended_at = ?"
                " WHERE workflow_id = ? AND state = ?",
                [StepState.DROPPED.value, now(), step.workflow_id, StepState.PREVIEWED.value],
            )
            last = self.db.read(
                "SELECT max(number) FROM workflow_steps WHERE workflow_id = ?", [step.workflow_id]
            )[0][0]
            made = step.model_copy(update={"number": (last or 0) + 1, "created_at": now()})
            if made.state.at_rest:
                made = made.model_copy(update={"ended_at": now()})
            WORKFLOW_STEPS.insert(db, made)
            return made

    def workflow_step(self, workflow_id: str, number: int) -> WorkflowStepRecord:
        """Raises `NotFound`."""
        rows = self.db.read(WORKFLOW_STEPS.select_one(), [workflow_id, number])
        if not rows:
            raise NotFound(f"workflow {workflow_id} has no step {number}")
        return WORKFLOW_STEPS.read(rows[0])

    def workflow_steps(
        self, workflow_id: str, *, step: Step | None = None, states: Sequence[StepState] = ()
    ) -> list[WorkflowStepRecord]:
        """In their order."""
        where, values = ["workflow_id = ?"], list[object]([workflow_id])
        if step is not None:
            where.append("step = ?")
            values.append(step.value)
        if states:
            where.append(f"state IN ({', '.join('?' * len(states))})")
            values += [state.value for state in states]
        return self._many(WORKFLOW_STEPS, " AND ".join(where), values, "number")

    def change_workflow_step(
        self, workflow_id: str, number: int, expect: StepState | None = None, **fields: object
    ) -> WorkflowStepRecord:
        """Change it. Raises `NotFound`, and `WrongState` when it is in another state than expected."""
        with self.db.transaction() as db:
            old = self.workflow_step(workflow_id, number)
            if expect is not None and old.state is not expect:
                raise WrongState(f"step {number} of {workflow_id} is {old.state.value}, not {expect.value}")
            new = WORKFLOW_STEPS.revised(old, fields)
            if new.state.at_rest and new.ended_at is None:
                new = WORKFLOW_STEPS.revised(new, {"ended_at": now()})
            if new.state is StepState.RUNNING and new.started_at is None:
                new = WORKFLOW_STEPS.revised(new, {"started_at": now()})
            WORKFLOW_STEPS.update(db, old, new)
            return new

    def run_labelled(self, label: str) -> str | None:
        """The run that has a task with this label; the newest where there are several."""
        rows = self.db.read(
            "SELECT run_id FROM tasks WHERE label = ? ORDER BY created_at DESC LIMIT 1", [label]
        )
        return rows[0][0] if rows else None

    def runs_of_workflows(self) -> set[str]:
        """Runs that are steps of workflows which have not ended."""
        rows = self.db.read(
            "SELECT s.run_id FROM workflow_steps s JOIN workflows w USING (workflow_id)"
            " WHERE s.run_id IS NOT NULL AND w.ended_at IS NULL"
        )
        return {row[0] for row in rows}

    def attempts_made(self, run_id: str) -> int:
        """How many attempts a run's tasks have had."""
        return int(self.db.read("SELECT count(*) FROM attempts WHERE run_id = ?", [run_id])[0][0])

    def forget_workflow(self, workflow_id: str) -> None:
        """Delete the record with its steps; what they point to goes its own way."""
        with self.db.transaction() as db:
            db.execute("DELETE FROM workflows WHERE workflow_id = ?", [workflow_id])
