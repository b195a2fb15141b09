"""`baton runs`: what has been delegated, and what became of it."""

from __future__ import annotations

import os

import click

from baton.cli.amounts import Moment, when
from baton.cli.group import Group, Lazy
from baton.cli.shown import echo_json, one_line
from baton.contract.states import RunState, Verdict
from baton.ledger.database import Database
from baton.ledger.overview import Overview, RunFilter
from baton.ledger.state import StateFolder

MAX_NAMED = 6
"""Tasks named in a line of the list."""


class _Runs(Lazy, Group):
    """The list is here; what shows one run needs more and is loaded when it is used."""

    places = {name: ("baton.cli.runs_results", name) for name in ("show", "diff", "log", "export")} | {
        "evidence": ("baton.cli.runs_results", "show_evidence")
    }


@click.group(cls=_Runs)
def runs() -> None:
    """Runs: what was delegated, and what became of it."""


@runs.command(name="list")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="How many.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in RunState]),
    help="In this state; may be repeated.",
)
@click.option(
    "--verdict", type=click.Choice([one.value for one in Verdict]), help="With a task of this verdict."
)
@click.option("--workspace", type=click.Path(), help="In this folder or below it.")
@click.option("--since", type=Moment(), help="Begun since then: 30m, 12h, 7d ago, or a date.")
@click.option("--until", type=Moment(), help="Begun before then.")
@click.option("--label", help="With this in the id, label or objective of a task.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def list_runs(
    limit: int,
    states: tuple[str, ...],
    verdict: str | None,
    workspace: str | None,
    since: float | None,
    until: float | None,
    label: str | None,
    as_json: bool,
) -> None:
    """The newest runs first, of all sessions."""
    chosen = RunFilter(
        states=states,
        verdict=verdict,
        workspace=None if workspace is None else os.path.realpath(workspace),
        since=since,
        until=until,
        label=label,
    )
    state = StateFolder.find()
    _take_up_what_was_left(state)
    with Database(state) as db:
        overview = Overview(db)
        found = [(run, overview.tasks(run.run_id)) for run in overview.runs(limit, chosen)]
    if as_json:
        echo_json(
            [
                {
                    "runId": run.run_id,
                    "state": run.state,
                    "workspace": run.workspace,
                    "createdAt": run.created_at,
                    "endedAt": run.ended_at,
                    "note": run.note,
                    "supervisor": {"threadId": run.thread_id, "model": run.model},
                    "tasks": [
                        {
                            "taskId": one.task_id,
                            "label": one.label,
                            "state": one.state,
                            "verdict": one.verdict,
                        }
                        for one in tasks
                    ],
                }
                for run, tasks in found
            ]
        )
        return
    if not found:
        click.echo("no runs yet" if chosen == RunFilter() else "no run fits")
    for run, tasks in found:
        named = ", ".join(one_line(f"{one.task_id} {one.verdict or one.state}") for one in tasks[:MAX_NAMED])
        more = f" and {len(tasks) - MAX_NAMED} more" if len(tasks) > MAX_NAMED else ""
        place = one_line(run.workspace)
        if run.note and not RunState(run.state).at_rest:
            place += f"  ({one_line(run.note)})"
        click.echo(f"{run.run_id}  {when(run.created_at)}  {run.state:<11}  {named}{more}  {place}")


def _take_up_what_was_left(state: StateFolder) -> None:
    """Recover runs whose process died; loads what that needs only when there may be one."""
    with Database(state) as db:
        if not Overview(db).may_need_recovery():
            return
    from baton.engine.house import House
    from baton.engine.recover import recover_all

    with House.open() as house:
        recover_all(house)
