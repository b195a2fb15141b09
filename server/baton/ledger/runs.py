"""Runs, their tasks and attempts, and the tries to integrate them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from baton.contract.states import RunState, TaskState
from baton.ledger.base import Part, expect_state, now
from baton.ledger.records import AttemptRecord, IntegrationRecord, NewEvent, RunRecord, TaskRecord
from baton.ledger.tables import ATTEMPTS, INTEGRATIONS, RUNS, TASKS


class Runs(Part):
    """Each method that changes something is one transaction, durable when it returns.

    `event` is written in that same transaction. `expect` names the states in which the change is allowed, and
    is checked inside the transaction, so that of two processes only one moves a run.
    """

    def create_run(
        self, run: RunRecord, tasks: Sequence[TaskRecord], *, event: NewEvent | None = None
    ) -> RunRecord:
        """Record a run and its tasks, all or nothing. Times are set here."""
        at = now()
        made = run.model_copy(update={"created_at": at, "updated_at": at})
        with self.db.transaction() as db:
            RUNS.insert(db, made)
            for task in tasks:
                TASKS.insert(db, task.model_copy(update={"created_at": at, "updated_at": at}))
            if event is not None:
                self._write_event(db, run.run_id, event)
        return made

    def run(self, run_id: str) -> RunRecord:
        """Raises `NotFound`."""
        return self._one(RUNS, run_id, what=f"run {run_id!r}")

    def runs(
        self,
        limit: int = 50,
        *,
        states: Collection[RunState] | None = None,
        workspace: str | None = None,
        repo_key: str | None = None,
    ) -> list[RunRecord]:
        """The newest runs first, at most `limit`."""
        where, values = ["1"], list[object]()
        if states is not None:
            where.append(f"state IN ({', '.join('?' * len(states))})")
            values.extend(state.value for state in states)
        if workspace is not None:
            where.append("workspace = ?")
            values.append(RUNS.stored("workspace", workspace))
        if repo_key is not None:
            where.append("repo_key = ?")
            values.append(repo_key)
        order = "created_at DESC, run_id LIMIT ?"
        return self._many(RUNS, " AND ".join(where), [*values, limit], order)

    def unfinished_runs(self) -> list[RunRecord]:
        """Every run that is not at rest: it has a runner, or a dead one left it (`StateFolder.run_lock`)."""
        return self.runs(-1, states=[state for state in RunState if not state.at_rest])

    def update_run(
        self,
        run_id: str,
        *,
        expect: Collection[RunState] | None = None,
        event: NewEvent | None = None,
        **fields: object,
    ) -> RunRecord:
        """Change fields of a run; the new record. `ended_at` follows the state by itself.

        Raises `NotFound`, and `WrongState` when its state is not one of `expect`.
        """
        with self.db.transaction() as db:
            old = self.run(run_id)
            expect_state(f"run {run_id}", old.state, expect)
            new = RUNS.revised(old, {**fields, "updated_at": now()})
            if new.state != old.state and "ended_at" not in fields:
                new = new.model_copy(update={"ended_at": new.updated_at if new.state.at_rest else None})
            RUNS.update(db, old, new)
            if event is not None:
                self._write_event(db, run_id, event)
        return new

    def tasks(self, run_id: str) -> list[TaskRecord]:
        """The tasks of a run in their order; empty for an unknown run."""
        return self._many(TASKS, "run_id = ?", [run_id], "position, task_id")

    def task(self, run_id: str, task_id: str) -> TaskRecord:
        """Raises `NotFound`."""
        return self._one(TASKS, run_id, task_id, what=f"task {task_id!r} in run {run_id!r}")

    def update_task(
        self,
        run_id: str,
        task_id: str,
        *,
        expect: Collection[TaskState] | None = None,
        event: NewEvent | None = None,
        **fields: object,
    ) -> TaskRecord:
        """As `update_run`, for a task."""
        with self.db.transaction() as db:
            old = self.task(run_id, task_id)
            expect_state(f"task {task_id} of run {run_id}", old.state, expect)
            new = TASKS.revised(old, {**fields, "updated_at": now()})
            if new.state != old.state and "ended_at" not in fields:
                new = new.model_copy(update={"ended_at": new.updated_at if new.state.at_rest else None})
            TASKS.update(db, old, new)
            if event is not None:
                self._write_event(db, run_id, event)
        return new

    def start_attempt(self, attempt: AttemptRecord, *, event: NewEvent | None = None) -> AttemptRecord:
        """Record an attempt before anything of it is done. Raises `NotFound` for an unknown task."""
        at = now()
        made = attempt.model_copy(update={"started_at": at, "updated_at": at})
        with self.db.transaction() as db:
            self.task(attempt.run_id, attempt.task_id)
            ATTEMPTS.insert(db, made)
            if event is not None:
                self._write_event(db, attempt.run_id, event)
        return made

    def update_attempt(
        self, run_id: str, task_id: str, attempt: int, *, event: NewEvent | None = None, **fields: object
    ) -> AttemptRecord:
        """Change fields of an attempt; the new record. Raises `NotFound`."""
        with self.db.transaction() as db:
            old = self.attempt(run_id, task_id, attempt)
            new = ATTEMPTS.revised(old, {**fields, "updated_at": now()})
            ATTEMPTS.update(db, old, new)
            if event is not None:
                self._write_event(db, run_id, event)
        return new

    def attempt(self, run_id: str, task_id: str, attempt: int) -> AttemptRecord:
        """Raises `NotFound`."""
        what = f"attempt {attempt} at task {task_id!r} in run {run_id!r}"
        return self._one(ATTEMPTS, run_id, task_id, attempt, what=what)

    def attempts(self, run_id: str, task_id: str | None = None) -> list[AttemptRecord]:
        """The attempts at one task, or at all tasks of the run, in their order."""
        if task_id is None:
            return self._many(ATTEMPTS, "run_id = ?", [run_id], "task_id, attempt")
        return self._many(ATTEMPTS, "run_id = ? AND task_id = ?", [run_id, task_id], "attempt")

    def start_integration(
        self, run_id: str, task_ids: Sequence[str], *, event: NewEvent | None = None, **fields: object
    ) -> IntegrationRecord:
        """Record the next try to integrate, before anything of it is done. Raises `NotFound`."""
        at = now()
        with self.db.transaction() as db:
            self.run(run_id)
            number = len(self.integrations(run_id)) + 1
            planned = IntegrationRecord(
                run_id=run_id, number=number, task_ids=list(task_ids), started_at=at, updated_at=at
            )
            made = INTEGRATIONS.revised(planned, fields)
            INTEGRATIONS.insert(db, made)
            if event is not None:
                self._write_event(db, run_id, event)
        return made

    def update_integration(
        self, run_id: str, number: int, *, event: NewEvent | None = None, **fields: object
    ) -> IntegrationRecord:
        """Change fields of a try to integrate; the new record. Raises `NotFound`."""
        with self.db.transaction() as db:
            what = f"integration {number} in run {run_id!r}"
            old = self._one(INTEGRATIONS, run_id, number, what=what)
            new = INTEGRATIONS.revised(old, {**fields, "updated_at": now()})
            INTEGRATIONS.update(db, old, new)
            if event is not None:
                self._write_event(db, run_id, event)
        return new

    def integrations(self, run_id: str) -> list[IntegrationRecord]:
        return self._many(INTEGRATIONS, "run_id = ?", [run_id], "number")
