"""Reads what is known of a run: the answers of `inspect_run`, by what is asked, with offset and limit."""

from __future__ import annotations

import json
from typing import Any

from baton.contract.calls import InspectCall, InspectWhat
from baton.contract.errors import NotFound
from baton.engine.handoff import handoff
from baton.engine.house import House
from baton.engine.paging import entries_window, text_window
from baton.engine.present import present_run, present_task
from baton.engine.private import open_repository
from baton.engine.results import chosen_of
from baton.engine.shorten import fit, size
from baton.engine.spending import attempts_spent, usage_totals
from baton.ledger.records import AttemptRecord, RunRecord, TaskRecord


def look(house: House, call: InspectCall) -> dict[str, Any]:
    """Answer one `inspect_run`. Raises `NotFound` for unknown ids, `InvalidInput` for a bad question.

    Text is cut to `limit` bytes from `offset`; of a list come the entries from number `offset` that fit into
    as many bytes. `nextOffset` says where to go on.
    """
    run = house.ledger.run(call.run_id)
    tasks = house.ledger.tasks(call.run_id)
    chosen = chosen_of(run, tasks, call.task_id)
    known = {"runId": run.run_id, "what": call.what.value}
    match call.what:
        case InspectWhat.SUMMARY:
            return _summary(house, run, tasks, call)
        case InspectWhat.DIFF:
            return known | text_window(_diff(house, run, chosen, call.attempt), call.offset, call.limit)
        case InspectWhat.CHECKS:
            return known | text_window(_checks(house, run, chosen, call.attempt), call.offset, call.limit)
        case InspectWhat.REPORT:
            return known | text_window(_report(house, run, chosen, call.attempt), call.offset, call.limit)
        case InspectWhat.EVENTS:
            return known | _events(house, run, call)
        case InspectWhat.TIMELINE:
            return known | text_window(_timeline(house, run), call.offset, call.limit)
        case InspectWhat.USAGE:
            spent = attempts_spent(house, run, chosen)
            return (
                known
                | usage_totals(house, run, chosen)
                | entries_window("tasks", spent, call.offset, call.limit)
            )
        case InspectWhat.HANDOFF:
            return known | handoff(
                house, run, tasks, lambda listed: entries_window("tasks", listed, call.offset, call.limit)
            )


def attempt_counts(house: House, run_id: str) -> dict[str, int]:
    """How many attempts each task of a run has had."""
    counts: dict[str, int] = {}
    for attempt in house.ledger.attempts(run_id):
        counts[attempt.task_id] = max(counts.get(attempt.task_id, 0), attempt.attempt)
    return counts


def _summary(house: House, run: RunRecord, tasks: list[TaskRecord], call: InspectCall) -> dict[str, Any]:
    counts = attempt_counts(house, run.run_id)
    if call.task_id is None:
        return present_run(run, tasks, counts)
    task = chosen_of(run, tasks, call.task_id)[0]
    return fit({"runId": run.run_id, **present_task(task, counts.get(task.task_id, 0))})


def _attempt(house: House, run: RunRecord, task: TaskRecord, number: int | None) -> AttemptRecord | None:
    attempts = house.ledger.attempts(run.run_id, task.task_id)
    if number is None:
        return attempts[-1] if attempts else None
    for attempt in attempts:
        if attempt.attempt == number:
            return attempt
    raise NotFound(f"task {task.task_id} of run {run.run_id} has no attempt {number}; it has {len(attempts)}")


def _diff(house: House, run: RunRecord, tasks: list[TaskRecord], number: int | None) -> str:
    repo = open_repository(house, run)
    parts = []
    for task in tasks:
        attempt = _attempt(house, run, task, number)
        if attempt is None or attempt.commit is None or attempt.base_commit is None:
            continue
        ref = f"refs/runs/{run.run_id}/tasks/{task.task_id}/{attempt.attempt}"
        parts.append(f"# {task.task_id}: {repo.fetch_command(ref)}\n")
        parts.append(repo.diff(attempt.base_commit, attempt.commit).decode("utf-8", "replace"))
    return "".join(parts) or "no result has been captured\n"


def _checks(house: House, run: RunRecord, tasks: list[TaskRecord], number: int | None) -> str:
    parts = []
    for task in tasks:
        attempt = _attempt(house, run, task, number)
        result = attempt.result if attempt is not None else None
        for check in result.evidence.checks if result is not None else ():
            parts.append(f"# {task.task_id}: {check.command}: {check.status.value}")
            parts.append(f" (exit {check.exit_code}, {check.seconds:g} s, tree {check.tree[:12]})\n")
            if check.detail:
                parts.append(f"{check.detail}\n")
            if check.output is not None:
                parts.append(house.artifacts.read(check.output).decode("utf-8", "replace"))
                parts.append("\n")
    for integration in house.ledger.integrations(run.run_id):
        for check in integration.checks:
            parts.append(f"# merged tree, try {integration.number}: {check.command}: {check.status.value}\n")
            if check.output is not None and check.tree != "":
                parts.append(house.artifacts.read(check.output).decode("utf-8", "replace"))
                parts.append("\n")
    return "".join(parts) or "no check was run\n"


def _report(house: House, run: RunRecord, tasks: list[TaskRecord], number: int | None) -> str:
    parts = []
    for task in tasks:
        attempt = _attempt(house, run, task, number)
        if attempt is None:
            continue
        for ref in house.ledger.artifact_refs(run.run_id, task.task_id):
            if ref.name == "report" and ref.attempt == attempt.attempt:
                text = house.artifacts.read(ref.artifact).decode("utf-8", "replace")
                parts.append(f"# {task.task_id}, attempt {attempt.attempt}: the worker's own words\n{text}\n")
        if attempt.result is not None:
            parts.append(json.dumps(attempt.result.wire(), ensure_ascii=False, indent=1) + "\n")
    return "".join(parts) or "no report yet\n"


def _events(house: House, run: RunRecord, call: InspectCall) -> dict[str, Any]:
    lines: list[str] = []
    after, room = call.offset, call.limit
    for event in house.ledger.events(run.run_id, after=after, limit=500, task_id=call.task_id):
        line = json.dumps(
            {"seq": event.seq, "at": round(event.created_at, 3), "kind": event.kind}
            | ({"task": event.task_id} if event.task_id else {})
            | event.data,
            ensure_ascii=False,
        )
        if lines and size(line) > room:
            break
        lines.append(line)
        after, room = event.seq, room - size(line)
    more = after < house.ledger.last_seq(run.run_id)
    return {"text": "\n".join(lines)} | ({"nextOffset": after} if more and lines else {})


def _timeline(house: House, run: RunRecord) -> str:
    lines = []
    for event in house.ledger.events(run.run_id, limit=10_000):
        if event.kind.startswith("worker."):
            continue
        task = f" {event.task_id}" if event.task_id else ""
        lines.append(f"{event.created_at - run.created_at:9.3f} s{task} {event.kind}")
    return "\n".join(lines) + "\n"
