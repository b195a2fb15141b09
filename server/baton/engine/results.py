"""Whole results of a run: patches, the output of checks, briefs and reports; for people and exports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from baton.contract.errors import NotFound
from baton.engine.house import House
from baton.engine.private import open_for_reading
from baton.ledger.records import AttemptRecord, RunRecord, TaskRecord


@dataclass(frozen=True)
class Patch:
    """What one attempt changed."""

    task_id: str
    attempt: int
    ref: str
    """Where it is kept in the private repository."""
    data: bytes
    """A patch that git applies, binary files included."""


def chosen_tasks(house: House, run: RunRecord, task_id: str | None) -> list[TaskRecord]:
    """All tasks of a run, or the one that is named. Raises `NotFound`."""
    return chosen_of(run, house.ledger.tasks(run.run_id), task_id)


def chosen_of(run: RunRecord, tasks: list[TaskRecord], task_id: str | None) -> list[TaskRecord]:
    """As `chosen_tasks`, of tasks that were read before."""
    if task_id is None:
        return tasks
    found = [task for task in tasks if task.task_id == task_id]
    if not found:
        names = ", ".join(task.task_id for task in tasks)
        raise NotFound(f"run {run.run_id} has no task {task_id!r}; it has {names}")
    return found


def chosen_attempts(
    house: House, run: RunRecord, tasks: Sequence[TaskRecord], number: int | None
) -> list[AttemptRecord]:
    """The last attempt at each task, or the one with that number. Raises `NotFound` when none has it."""
    last: list[AttemptRecord] = []
    for task in tasks:
        attempts = house.ledger.attempts(run.run_id, task.task_id)
        last += [one for one in attempts if one.attempt == number] if number is not None else attempts[-1:]
    if number is not None and not last:
        raise NotFound(f"run {run.run_id} has no attempt {number} at what was asked for")
    return last


def patches(house: House, run: RunRecord, attempts: Sequence[AttemptRecord]) -> Iterator[Patch]:
    """Of those attempts that have a captured result."""
    captured = [one for one in attempts if one.commit is not None and one.base_commit is not None]
    if not captured:
        return
    repo = open_for_reading(house, run)
    for one in captured:
        assert one.commit is not None and one.base_commit is not None
        ref = f"refs/runs/{run.run_id}/tasks/{one.task_id}/{one.attempt}"
        data = repo.diff(one.base_commit, one.commit, binary=True)
        yield Patch(one.task_id, one.attempt, ref, data)


def kept_text(house: House, run: RunRecord, name: str, attempt: AttemptRecord) -> bytes | None:
    """`brief` or `report` of an attempt as it was kept; None when there was none."""
    for ref in house.ledger.artifact_refs(run.run_id, attempt.task_id):
        if ref.name == name and ref.attempt == attempt.attempt:
            return house.artifacts.read(ref.artifact)
    return None


def evidence(house: House, run: RunRecord, tasks: Sequence[TaskRecord]) -> dict[str, Any]:
    """Everything that was observed of every attempt, with the tries to integrate; nothing cut."""
    shown = []
    for task in tasks:
        attempts = house.ledger.attempts(run.run_id, task.task_id)
        shown.append(
            {
                "taskId": task.task_id,
                "state": task.state.value,
                "verdict": task.verdict,
                "reasons": task.reasons,
                "outcome": task.outcome.wire(compact=False),
                "kept": task.kept,
                "contract": task.contract.wire(),
                "attempts": [_attempt(record) for record in attempts],
            }
        )
    tries = [
        {
            "number": one.number,
            "step": one.step,
            "tasks": one.task_ids,
            "detail": one.detail,
            "conflicts": one.conflicts,
            "mergedTree": one.merged_tree,
            "checks": [check.wire() for check in one.checks],
        }
        for one in house.ledger.integrations(run.run_id)
    ]
    return {
        "runId": run.run_id,
        "state": run.state.value,
        "workspace": run.workspace,
        "tasks": shown,
        "integrations": tries,
    }


def _attempt(record: AttemptRecord) -> dict[str, Any]:
    return {
        "attempt": record.attempt,
        "kind": record.kind,
        "step": record.step,
        "threadId": record.thread_id,
        "startedAt": record.started_at,
        "route": None if record.route is None else record.route.wire(compact=False),
        "result": None if record.result is None else record.result.wire(),
    }
