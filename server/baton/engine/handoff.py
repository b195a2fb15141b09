"""The packet from which another session goes on with a run: what was asked, what is there, what is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baton.contract.states import Integration
from baton.engine.house import House
from baton.engine.life import is_kept_back
from baton.engine.plan import RunPlan
from baton.engine.present import next_step, present_task, told_by_plan
from baton.engine.private import open_repository
from baton.engine.shorten import fit
from baton.engine.summary import batch_next
from baton.ledger.records import AttemptRecord, RunRecord, TaskRecord
from baton.verify.command import read_command
from baton.workspace.repository import PrivateRepository

MAX_ENTRY = 3_000
"""Bytes of one task."""
MAX_OBJECTIVE = 400

Paged = Callable[[list[dict[str, Any]]], dict[str, Any]]


def handoff(house: House, run: RunRecord, tasks: list[TaskRecord], paged: Paged) -> dict[str, Any]:
    """The packet. `paged` cuts the list of tasks to what an answer holds.

    It needs nothing of the session that began: every result can be fetched by the git command given, and
    every call that is named works from any session.
    """
    plan = RunPlan.model_validate(run.options)
    repo = open_repository(house, run)
    packet: dict[str, Any] = {
        "state": run.state.value,
        "workspace": run.workspace,
        "base": run.base_commit,
        "head": run.head_commit,
        "integrate": run.integrate.value,
    }
    if run.note:
        packet["note"] = run.note
    if plan.hold_reason:
        packet["hold"] = plan.hold_reason
    packet |= told_by_plan(plan)
    packet["next"] = next_step(run, tasks) if len(tasks) == 1 else batch_next(run, tasks)
    return packet | paged([_entry(house, repo, run, task) for task in tasks])


def _entry(house: House, repo: PrivateRepository, run: RunRecord, task: TaskRecord) -> dict[str, Any]:
    attempts = house.ledger.attempts(run.run_id, task.task_id)
    contract = task.contract
    asked: dict[str, Any] = {
        "objective": contract.objective[:MAX_OBJECTIVE],
        "allowedFiles": contract.allowed_files,
        "checks": [read_command(command).shown for command in contract.verification_commands],
    }
    if task.depends_on:
        asked["dependsOn"] = task.depends_on
    if contract.acceptance_criteria:
        asked["acceptanceCriteria"] = contract.acceptance_criteria
    entry = asked | present_task(task, 0)
    if attempts:
        entry["attempts"] = [_attempt(record) for record in attempts]
    if task.kept is not None:
        entry["kept"] = task.kept
        entry["fetch"] = repo.fetch_command(task.kept)
    entry["open"] = _open(task, attempts)
    return fit(entry, MAX_ENTRY)


def _attempt(record: AttemptRecord) -> str:
    told = record.result.verdict.value if record.result is not None else record.step
    return f"{record.kind}: {told}"


def _open(task: TaskRecord, attempts: list[AttemptRecord]) -> str:
    """What is left to be decided of one task, and the call that does it."""
    landed = {
        Integration.APPLIED: "nothing: it landed",
        Integration.NOTHING: "nothing: there was no change to land",
        Integration.DISCARDED: "nothing: it was discarded",
    }
    if not task.state.at_rest:
        return "it is at work: wait_run"
    if task.outcome.integration in landed:
        return landed[task.outcome.integration]
    thread = any(record.thread_id for record in attempts)
    more = "continue_task with what is missing" if thread else "delegate it anew"
    if is_kept_back(task):
        return f"a change is kept: control_run integrate or discard, or {more}"
    return f"nothing is kept: {more}, or leave it"
