"""What is going on now: the runs at work with their tasks, or one run. It reads and recovers nothing.

It starts at once, so it imports nothing that validates: see `ledger/overview.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton.contract.errors import NotFound
from baton.contract.states import RunState, TaskState
from baton.engine.tell import tell
from baton.ledger.lines import AttemptLine, EventLine, RunLine, TaskLine
from baton.ledger.locks import is_held
from baton.ledger.overview import Overview
from baton.ledger.state import StateFolder

RECENT = 3
"""Runs at rest that are shown when none is at work."""

MAX_RUNS = 50


@dataclass(frozen=True)
class TaskNow:
    """One task as it stands."""

    line: TaskLine
    attempts: Sequence[AttemptLine]
    event: EventLine | None
    """The last one."""
    seconds: float | None
    """Since its first attempt began, until it came to rest or now; None before that."""

    @property
    def attempt(self) -> AttemptLine | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def at_rest(self) -> bool:
        return TaskState(self.line.state).at_rest

    @property
    def tokens(self) -> int | None:
        """Of all its attempts together, as far as known; None when nothing is."""
        return _sum(attempt.tokens for attempt in self.attempts)

    @property
    def tokens_complete(self) -> bool:
        return bool(self.attempts) and all(attempt.tokens is not None for attempt in self.attempts)

    @property
    def checks(self) -> Mapping[str, int]:
        """Of the last attempt that had any."""
        return next((attempt.checks for attempt in reversed(self.attempts) if attempt.checks), {})

    @property
    def violations(self) -> int:
        """Of the last attempt."""
        return self.attempts[-1].violations if self.attempts else 0

    @property
    def step(self) -> str:
        """What it is at, or what it waits for."""
        if self.at_rest:
            return ""
        if self.attempt is None or self.line.state == TaskState.QUEUED:
            waits = ", ".join(self.line.depends_on)
            return f"waits for {waits}" if waits else "waits for a worker"
        if self.attempt.attempt == 1:
            return self.attempt.step
        return f"{self.attempt.step} ({self.attempt.kind} {self.attempt.attempt})"


@dataclass(frozen=True)
class RunNow:
    """One run with its tasks."""

    line: RunLine
    tasks: Sequence[TaskNow]
    event: EventLine | None
    alive: bool
    """Whether a process carries it on. A run that is neither at rest nor alive has lost its process."""
    integrating: tuple[int, str] | None
    seconds: float

    @property
    def at_rest(self) -> bool:
        return RunState(self.line.state).at_rest

    @property
    def tokens(self) -> int | None:
        return _sum(task.tokens for task in self.tasks)

    @property
    def tokens_complete(self) -> bool:
        return bool(self.tasks) and all(task.tokens_complete for task in self.tasks)


def activity(overview: Overview, state: StateFolder, now: float, run_id: str | None = None) -> list[RunNow]:
    """The run that is named; else all that are at work, the newest first; else the last few.

    Raises `NotFound` for an unknown run.
    """
    if run_id is not None:
        line = overview.run(run_id)
        if line is None:
            raise NotFound(f"no run {run_id!r}; `baton runs list` lists the runs")
        lines = [line]
    else:
        lines = overview.unfinished()[:MAX_RUNS] or overview.runs(RECENT)
    return [run_now(overview, state, line, now) for line in lines]


def run_now(overview: Overview, state: StateFolder, line: RunLine, now: float) -> RunNow:
    """One run as it stands."""
    attempts: dict[str, list[AttemptLine]] = {}
    for attempt in overview.attempts(line.run_id):
        attempts.setdefault(attempt.task_id, []).append(attempt)
    tasks = [
        _task_now(overview, line.run_id, task, attempts.get(task.task_id, []), now)
        for task in overview.tasks(line.run_id)
    ]
    at_rest = RunState(line.state).at_rest
    return RunNow(
        line=line,
        tasks=tasks,
        event=overview.last_event(line.run_id),
        alive=not at_rest and is_held(state.run_lock(line.run_id)),
        integrating=overview.integrating(line.run_id) if line.state == RunState.INTEGRATING else None,
        seconds=max(0.0, (line.ended_at or now) - line.created_at),
    )


def wire(run: RunNow) -> dict[str, Any]:
    """The run for programs; what is unknown is null."""
    line = run.line
    return {
        "runId": line.run_id,
        "state": line.state,
        "alive": run.alive,
        "workspace": line.workspace,
        "mode": line.mode,
        "background": line.background,
        "note": line.note,
        "integration": line.integration,
        "integrating": None if run.integrating is None else run.integrating[1],
        "supervisor": {"threadId": line.thread_id, "model": line.model},
        "createdAt": line.created_at,
        "endedAt": line.ended_at,
        "elapsedSeconds": round(run.seconds, 1),
        "tokens": run.tokens,
        "tokensComplete": run.tokens_complete,
        "lastEvent": event_wire(run.event),
        "tasks": [_task_wire(task) for task in run.tasks],
    }


def event_wire(event: EventLine | None) -> dict[str, Any] | None:
    """One event for programs, as docs/events.md describes it, with its words for people as `text`."""
    if event is None:
        return None
    return {
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind,
        "taskId": event.task_id,
        "attempt": event.attempt,
        "data": dict(event.data),
        "text": tell(event.kind, event.data),
    }


def _task_now(
    overview: Overview, run_id: str, line: TaskLine, attempts: list[AttemptLine], now: float
) -> TaskNow:
    began = attempts[0].started_at if attempts else None
    return TaskNow(
        line=line,
        attempts=attempts,
        event=overview.last_event(run_id, line.task_id),
        seconds=None if began is None else max(0.0, (line.ended_at or now) - began),
    )


def _task_wire(task: TaskNow) -> dict[str, Any]:
    line, attempt = task.line, task.attempt
    return {
        "taskId": line.task_id,
        "label": line.label,
        "objective": line.objective,
        "state": line.state,
        "verdict": line.verdict,
        "reason": line.reason,
        "integration": line.integration,
        "dependsOn": [*line.depends_on],
        "elapsedSeconds": None if task.seconds is None else round(task.seconds, 1),
        "step": task.step or None,
        "attempt": None if attempt is None else attempt.attempt,
        "attemptKind": None if attempt is None else attempt.kind,
        "route": None
        if attempt is None or attempt.model is None
        else {"model": attempt.model, "effort": attempt.effort, "deviates": attempt.deviates},
        "tokens": task.tokens,
        "tokensComplete": task.tokens_complete,
        "checks": dict(task.checks),
        "violations": task.violations,
        "lastEvent": event_wire(task.event),
    }


def _sum(parts: Any) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
