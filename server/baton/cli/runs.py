"""`baton runs`: what has been delegated, and what became of it."""

from __future__ import annotations

import datetime
import json
from typing import Any

import click

from baton.cli.group import Group
from baton.contract.calls import InspectCall, InspectWhat
from baton.engine.house import House
from baton.engine.look import attempt_counts, look
from baton.engine.present import present_run
from baton.engine.recover import recover_all
from baton.ledger.records import RunRecord, TaskRecord


@click.group(cls=Group)
def runs() -> None:
    """Runs: what was delegated, and what became of it."""


@runs.command(name="list")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="How many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def list_runs(limit: int, as_json: bool) -> None:
    """The newest runs first."""
    with House.open() as house:
        recover_all(house)
        found = [(run, house.ledger.tasks(run.run_id)) for run in house.ledger.runs(limit)]
    if as_json:
        click.echo(json.dumps([_entry(run, tasks) for run, tasks in found], ensure_ascii=False))
        return
    if not found:
        click.echo("no runs yet")
    for run, tasks in found:
        verdicts = ", ".join(f"{task.task_id} {task.verdict or task.state}" for task in tasks[:6])
        more = f" and {len(tasks) - 6} more" if len(tasks) > 6 else ""
        click.echo(
            f"{run.run_id}  {_when(run.created_at)}  {run.state:<11}  {verdicts}{more}  {run.workspace}"
        )


@runs.command()
@click.argument("run_id", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(run_id: str, as_json: bool) -> None:
    """One run with the result of every task, and the git command that fetches what is kept."""
    with House.open() as house:
        recover_all(house)
        run = house.ledger.run(run_id)
        tasks = house.ledger.tasks(run_id)
        counts = attempt_counts(house, run_id)
        if as_json:
            shown = present_run(run, tasks, counts)
            shown["results"] = [task.result.wire() if task.result else None for task in tasks]
            click.echo(json.dumps(_entry(run, tasks) | shown, ensure_ascii=False))
            return
        click.echo(f"{run.run_id}  {run.state}  {run.workspace}")
        if run.note:
            click.echo(f"  {run.note}")
        for task in tasks:
            _show_task(house, run, task)


def _show_task(house: House, run: RunRecord, task: TaskRecord) -> None:
    click.echo(
        f"\n{task.task_id}: {task.verdict or task.state}  {task.label or task.contract.objective[:80]}"
    )
    for reason in task.reasons:
        click.echo(f"  because: {reason}")
    if task.outcome.integration is not None:
        detail = f": {task.outcome.detail}" if task.outcome.detail else ""
        click.echo(f"  workspace: {task.outcome.integration}{detail}")
    result = task.result
    if result is None:
        return
    if result.claim is not None:
        click.echo(f"  claim: {result.claim.status}: {' '.join(result.claim.summary.split())[:200]}")
    evidence = result.evidence
    click.echo(f"  scope: {evidence.scope.enforcement}")
    for violation in evidence.scope.violations:
        click.echo(f"  out of scope: {violation.path} ({violation.rule})")
    for change in evidence.changes[:50]:
        click.echo(f"  {change.kind}: {change.path}")
    for check in evidence.checks:
        click.echo(f"  check {check.status}: {check.command}{f' ({check.detail})' if check.detail else ''}")
    for line in evidence.discrepancies:
        click.echo(f"  discrepancy: {line}")
    for line in evidence.notices:
        click.echo(f"  notice: {line}")
    if task.kept is not None:
        diff = look(
            house, InspectCall(run_id=run.run_id, what=InspectWhat.DIFF, task_id=task.task_id, limit=400)
        )
        command = str(diff["text"]).partition("\n")[0].partition(": ")[2]
        click.echo(f"  kept: {command}")


def _entry(run: RunRecord, tasks: list[TaskRecord]) -> dict[str, Any]:
    return {
        "runId": run.run_id,
        "state": run.state.value,
        "workspace": run.workspace,
        "createdAt": run.created_at,
        "endedAt": run.ended_at,
        "tasks": [
            {"taskId": task.task_id, "state": task.state.value, "verdict": task.verdict} for task in tasks
        ],
    }


def _when(moment: float) -> str:
    return datetime.datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M")
