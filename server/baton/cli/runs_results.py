"""`baton runs show`, `diff`, `log`, `evidence` and `export`: all that is known of one run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from baton.cli.runs_text import evidence_lines, run_lines
from baton.cli.shown import echo_json, many_lines, one_line
from baton.contract.wording import many
from baton.engine.activity import event_wire
from baton.engine.export import export_run
from baton.engine.house import House
from baton.engine.launch import runner_log
from baton.engine.look import attempt_counts
from baton.engine.present import present_run
from baton.engine.private import fetch_command
from baton.engine.recover import recover_all
from baton.engine.results import chosen_attempts, chosen_tasks, evidence, patches
from baton.engine.tell import tell
from baton.ledger.overview import Overview
from baton.ledger.records import RunRecord, TaskRecord

PAGE = 1000

as_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
task_option = click.option("--task", "task_id", help="Only this task.")
attempt_option = click.option(
    "--attempt", type=click.IntRange(min=1), help="This attempt. Default: the last."
)


@click.command()
@click.argument("run_id", metavar="RUN")
@as_json_option
def show(run_id: str, as_json: bool) -> None:
    """One run with the result of every task, and the git command that fetches what is kept."""
    with House.open() as house:
        recover_all(house)
        run = house.ledger.run(run_id)
        tasks = house.ledger.tasks(run_id)
        fetch = {task.task_id: fetch_command(house, run, task.kept) for task in tasks if task.kept}
        if as_json:
            shown = present_run(run, tasks, attempt_counts(house, run_id))
            shown["results"] = [task.result.wire() if task.result else None for task in tasks]
            shown["fetch"] = fetch
            echo_json(_entry(run, tasks) | shown)
            return
    for line in run_lines(run, tasks, fetch):
        click.echo(line)


@click.command()
@click.argument("run_id", metavar="RUN")
@task_option
@attempt_option
@click.option("--raw", is_flag=True, help="The patches alone, byte for byte, for `git apply`.")
@as_json_option
def diff(run_id: str, task_id: str | None, attempt: int | None, raw: bool, as_json: bool) -> None:
    """What the tasks of a run changed, whether or not it landed.

    What cannot be printed is shown as escapes, unless --raw is given.
    """
    with House.open() as house:
        run = house.ledger.run(run_id)
        attempts = chosen_attempts(house, run, chosen_tasks(house, run, task_id), attempt)
        found = list(patches(house, run, attempts))
        fetch = {patch.ref: fetch_command(house, run, patch.ref) for patch in found}
    if raw:
        sys.stdout.buffer.write(b"".join(patch.data for patch in found))
        return
    if as_json:
        shown = [
            {
                "taskId": patch.task_id,
                "attempt": patch.attempt,
                "fetch": fetch[patch.ref],
                "diff": patch.data.decode("utf-8", "backslashreplace"),
            }
            for patch in found
        ]
        echo_json({"runId": run_id, "tasks": shown})
        return
    if not found:
        click.echo("no result has been captured")
    for patch in found:
        click.echo(f"# {patch.task_id}, attempt {patch.attempt}: {one_line(fetch[patch.ref])}")
        click.echo(many_lines(patch.data.decode("utf-8", "surrogateescape")), nl=False)


@click.command()
@click.argument("run_id", metavar="RUN")
@task_option
@click.option("--after", default=0, type=click.IntRange(min=0), help="Only events with a greater number.")
@click.option("--runner", is_flag=True, help="What the run's own process wrote instead.")
@as_json_option
def log(run_id: str, task_id: str | None, after: int, runner: bool, as_json: bool) -> None:
    """Every event of a run, oldest first, with the seconds since it began."""
    with House.open() as house:
        run = house.ledger.run(run_id)
        if task_id is not None:
            chosen_tasks(house, run, task_id)
        if runner:
            _runner_log(house, run_id, as_json=as_json)
            return
        overview, first = Overview(house.ledger.db), True
        if as_json:
            click.echo(f'{{"runId": {json.dumps(run_id)}, "events": [', nl=False)
        while events := overview.events(run_id, after, PAGE):
            after = events[-1].seq
            for event in events:
                if task_id is not None and event.task_id != task_id:
                    continue
                if as_json:
                    click.echo(("" if first else ", ") + json.dumps(event_wire(event)), nl=False)
                    first = False
                    continue
                task = f" {one_line(event.task_id)}" if event.task_id else ""
                told = one_line(tell(event.kind, event.data))
                click.echo(f"{event.at - run.created_at:9.3f} s {event.seq:>5}{task} {told}")
        if as_json:
            click.echo("]}")


@click.command(name="evidence")
@click.argument("run_id", metavar="RUN")
@task_option
@click.option("--output", is_flag=True, help="With the whole output of every check.")
@as_json_option
def show_evidence(run_id: str, task_id: str | None, output: bool, as_json: bool) -> None:
    """What each worker claims beside what Baton observed, for every attempt."""
    with House.open() as house:
        run = house.ledger.run(run_id)
        tasks = chosen_tasks(house, run, task_id)
        if as_json:
            found = evidence(house, run, tasks)
            if output:
                found["outputs"] = dict(_outputs(house, found))
            echo_json(found)
            return
        for line in evidence_lines(house, run, tasks, with_output=output):
            click.echo(line)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@as_json_option
def export(run_id: str, folder: Path | None, as_json: bool) -> None:
    """Write all that is known of a run into a new FOLDER (default: ./RUN) of plain files.

    Events, evidence, patches, briefs, reports and the whole output of checks: they may hold secrets that
    your files or commands hold.
    """
    with House.open() as house:
        run = house.ledger.run(run_id)
        place = folder if folder is not None else Path(run.run_id)
        files = export_run(house, run, place)
    if as_json:
        echo_json({"runId": run_id, "folder": str(place.resolve()), "files": files})
        return
    click.echo(f"wrote {many(len(files), 'file')} to {one_line(str(place.resolve()))}")


def _runner_log(house: House, run_id: str, *, as_json: bool) -> None:
    path = runner_log(house, run_id)
    text = path.read_text("utf-8", "surrogateescape") if path.exists() else ""
    if as_json:
        echo_json({"runId": run_id, "path": str(path), "text": text})
        return
    click.echo(many_lines(text), nl=False)
    if not text:
        click.echo(f"it wrote nothing ({path})", file=sys.stderr)


def _outputs(house: House, found: dict[str, Any]) -> dict[str, str]:
    """The outputs of all checks by their artifact id."""
    results = [attempt["result"] for task in found["tasks"] for attempt in task["attempts"]]
    checks = [check for result in results if result for check in result["evidence"].get("checks", [])]
    checks += [check for one in found["integrations"] for check in one["checks"]]
    ids = {check["output"] for check in checks if check.get("output")}
    return {one: house.artifacts.read(one).decode("utf-8", "backslashreplace") for one in ids}


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
