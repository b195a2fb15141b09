"""Runs, tasks, attempts and events in the few columns that lists need, as rows of the database give them.

It loads neither pydantic nor the records, so that a program that only looks starts at once. Every reader
raises `StateUnavailable` for a row that this version does not understand.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from baton.contract.states import RunState, TaskState
from baton.ledger.faults import not_as_written

T = TypeVar("T")

RUN_STATES, TASK_STATES = frozenset(RunState), frozenset(TaskState)


@dataclass(frozen=True)
class RunLine:
    """One run. Times are seconds since 1970."""

    run_id: str
    workspace: str
    repo_key: str
    state: str
    mode: str
    background: bool
    spared: bool
    integration: str | None
    note: str | None
    program: str
    thread_id: str | None
    """The session that asked."""
    model: str | None
    """Its model."""
    created_at: float
    updated_at: float
    ended_at: float | None


@dataclass(frozen=True)
class TaskLine:
    """One task."""

    task_id: str
    position: int
    label: str | None
    objective: str
    state: str
    verdict: str | None
    integration: str | None
    detail: str | None
    reason: str | None
    depends_on: tuple[str, ...]
    created_at: float
    updated_at: float
    ended_at: float | None


@dataclass(frozen=True)
class AttemptLine:
    """One attempt at a task."""

    task_id: str
    attempt: int
    kind: str
    step: str
    model: str | None
    effort: str | None
    deviates: bool
    tokens: int | None
    """None: not known, or not yet."""
    checks: Mapping[str, int] = field(default_factory=dict)
    """How many ended how; empty before they were run."""
    violations: int = 0
    started_at: float = 0.0


@dataclass(frozen=True)
class EventLine:
    """One event of a run."""

    run_id: str
    seq: int
    at: float
    kind: str
    task_id: str | None
    attempt: int | None
    data: Mapping[str, Any]


@dataclass(frozen=True)
class AttemptSpent:
    """The tokens of one attempt; None is unknown."""

    run_id: str
    task_id: str
    workspace: str
    model: str | None
    tier: str | None
    role: str | None
    verdict: str | None
    """Of its task, on the last attempt at it; None on earlier ones."""
    counts: bool
    """Whether it is the last attempt at its task."""
    input_tokens: int | None
    cached_input_tokens: int | None
    output_tokens: int | None
    reasoning_output_tokens: int | None
    total_tokens: int | None


def stored_json(text: str, kind: type[T], record: str) -> T:
    """The value of a JSON text; `record` says in an error whose it is. Raises `StateUnavailable`."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise not_as_written(record, str(error)) from None
    if not isinstance(value, kind):
        raise not_as_written(record, f"{type(value).__name__} where {kind.__name__} is expected")
    return value


def read_run(row: sqlite3.Row) -> RunLine:
    run_id, workspace, repo_key, state, mode, background, spared, *rest = row
    if state not in RUN_STATES:
        raise not_as_written(f"run {run_id}", f"its state is {state!r}")
    return RunLine(
        run_id, os.fsdecode(workspace), repo_key, state, mode, bool(background), bool(spared), *rest
    )


def read_task(row: sqlite3.Row) -> TaskLine:
    values = list(row)
    record = f"task {values[0]}"
    if values[4] not in TASK_STATES:
        raise not_as_written(record, f"its state is {values[4]!r}")
    values[9] = tuple(stored_json(values[9], list, record))
    return TaskLine(*values)


def read_attempt(row: sqlite3.Row) -> AttemptLine:
    task_id, attempt, kind, step, model, effort, deviates, tokens, checks, violations, started_at = row
    return AttemptLine(
        task_id=task_id,
        attempt=attempt,
        kind=kind,
        step=step,
        model=model,
        effort=effort,
        deviates=bool(deviates),
        tokens=tokens,
        checks=stored_json(checks or "{}", dict, f"attempt {attempt} at task {task_id}"),
        violations=violations,
        started_at=started_at,
    )


def read_event(row: sqlite3.Row) -> EventLine:
    run_id, seq, at, kind, task_id, attempt, data = row
    return EventLine(
        run_id, seq, at, kind, task_id, attempt, stored_json(data, dict, f"event {seq} of run {run_id}")
    )


def read_spent(row: sqlite3.Row) -> AttemptSpent:
    run_id, task_id, workspace, model, tier, role, verdict, last, *tokens = row
    return AttemptSpent(
        run_id,
        task_id,
        os.fsdecode(workspace),
        model,
        tier,
        role,
        verdict if last else None,
        bool(last),
        *tokens,
    )
