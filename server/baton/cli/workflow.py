"""`baton workflow`: jobs in phases from a terminal; the person at it is asked before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import click

from baton.cli.group import Group
from baton.cli.listing import print_jobs
from baton.cli.pairs import read_pairs
from baton.cli.shown import echo_json, one_line
from baton.cli.workflow_text import due_text, print_workflow
from baton.contract.argument_names import renamed
from baton.contract.base import parse
from baton.contract.errors import InvalidInput
from baton.contract.session import Session
from baton.contract.workflow import Step, WorkflowCall, WorkflowPart
from baton.engine.house import House

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_WAIT = click.option(
    "--wait", default=240, show_default=True, type=click.IntRange(0, 280), help="Seconds to wait."
)
_YES = click.option("--yes", is_flag=True, help="Send without asking.")
_STEP = click.Choice([step.value for step in Step])


@click.group(cls=Group)
def workflow() -> None:
    """Whole jobs in phases: plan, implement, test, review, fix."""


@workflow.command()
@click.argument("goal")
@click.option("--preset", help="Who does what, by its name in the policy.")
@click.option("--bind", "bound", multiple=True, metavar="STEP=WHO", help="Who does a step; again.")
@click.option("--allow", "allowed", multiple=True, metavar="PATTERN", help="What may change; again.")
@click.option("--test", "tests", multiple=True, metavar="COMMAND", help="A test that Baton runs; again.")
@click.option("--send", "paths", multiple=True, metavar="FILE", help="A file sent with every step; again.")
@click.option("--dirty", is_flag=True, help="Start although files differ from HEAD.")
@_WAIT
@_YES
@_JSON
def start(
    goal: str,
    preset: str | None,
    bound: tuple[str, ...],
    allowed: tuple[str, ...],
    tests: tuple[str, ...],
    paths: tuple[str, ...],
    dirty: bool,
    wait: int,
    yes: bool,
    as_json: bool,
) -> None:
    """Start a workflow in this folder, and go on until something is needed."""
    given = {
        "goal": goal,
        "preset": preset,
        "bindings": read_pairs(bound, "--bind", "STEP=WHO"),
        "allowedFiles": list(allowed),
        "tests": list(tests),
        "contextPaths": list(paths),
        "allowDirty": dirty,
    }
    _go(lambda doing: doing("start", waitSeconds=wait, **given), wait, yes, as_json)


@workflow.command("next")
@click.argument("workflow_id", metavar="ID")
@click.option("--send", "paths", multiple=True, metavar="FILE", help="A file sent with this step; again.")
@click.option(
    "--context", "context", type=click.Path(dir_okay=False, exists=True), help="A file as material."
)
@_WAIT
@_YES
@_JSON
def next_(
    workflow_id: str, paths: tuple[str, ...], context: str | None, wait: int, yes: bool, as_json: bool
) -> None:
    """Show what is due, ask, do it, and go on until something else is needed."""
    given: dict[str, Any] = {"contextPaths": list(paths), "context": _text_of(context)}
    _go(lambda doing: doing("next", workflow_id, waitSeconds=wait, **given), wait, yes, as_json)


@workflow.command()
@click.argument("workflow_id", metavar="ID")
@click.argument("step", type=_STEP)
@click.option("--text", help="What came of it, or the conclusion.")
@click.option("--file", type=click.Path(dir_okay=False, exists=True), help="A file that holds it.")
@click.option("--commit", help="The commit that holds it.")
@click.option("--reject", help="apply: why the change is not wanted.")
@click.option("--test", "command", metavar="COMMAND", help="test: the command that you ran.")
@click.option("--exit-status", type=int, help="test: how it ended.")
@click.option("--finding", "found", multiple=True, metavar="ID=DISPOSITION[:REASON]", help="Again for each.")
@_WAIT
@_JSON
def record(
    workflow_id: str,
    step: str,
    text: str | None,
    file: str | None,
    commit: str | None,
    reject: str | None,
    command: str | None,
    exit_status: int | None,
    found: tuple[str, ...],
    wait: int,
    as_json: bool,
) -> None:
    """Record a step that you did yourself."""
    given: dict[str, Any] = {
        "step": step,
        "text": text or _text_of(file),
        "commit": commit,
        "reject": reject,
        "report": None if command is None else {"command": command, "exitCode": exit_status},
        "dispositions": [_disposition(one) for one in found],
    }
    if given["report"] is not None and exit_status is None:
        del given["report"]["exitCode"]
    _go(
        lambda doing: doing("record", workflow_id, waitSeconds=wait, **given), wait, False, as_json, ask=False
    )


@workflow.command()
@click.argument("workflow_id", metavar="ID")
@click.option("--bind", "bound", multiple=True, metavar="STEP=WHO", help="Who does a step; again.")
@click.option("--to", "step", type=_STEP, help="Go back to this step.")
@click.option("--more-rounds", default=0, type=click.IntRange(0, 100), help="Further fix rounds.")
@_YES
@_JSON
def replan(
    workflow_id: str, bound: tuple[str, ...], step: str | None, more_rounds: int, yes: bool, as_json: bool
) -> None:
    """Show what would change, ask, and change it."""
    given = {
        "bindings": read_pairs(bound, "--bind", "STEP=WHO"),
        "step": step,
        "moreRounds": more_rounds,
        "waitSeconds": 0,
    }
    with House.open() as house:
        shown = _do(house, "replan", workflow_id, **given)
        for name, change in shown["would"]["bindings"].items():
            click.echo(one_line(f"{name}: {change}"), err=as_json)
        click.echo(f"then: {shown['would']['state']}, round {shown['would']['rounds']}", err=as_json)
        ceilings = shown["would"].get("ceilings")
        if ceilings is not None:
            told = f"{ceilings['costUsd']} US dollars, {ceilings['turns']} turns; 0 is none"
            click.echo(f"ceilings: {told}", err=as_json)
        if not yes:
            click.confirm("change it?", abort=True, err=True)
        print_workflow(_do(house, "replan", workflow_id, confirm=shown["confirm"], **given), as_json)


@workflow.command()
@click.argument("workflow_id", metavar="ID")
@_JSON
def cancel(workflow_id: str, as_json: bool) -> None:
    """Stop what is at work and end the workflow; what was made is kept."""
    with House.open() as house:
        print_workflow(_do(house, "cancel", workflow_id), as_json)


@workflow.command("list")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="How many.")
@_JSON
def list_(limit: int, as_json: bool) -> None:
    """Workflows, the newest first, with their ids."""
    with House.open() as house:
        found = [
            {
                "id": one.workflow_id,
                "state": one.state.value,
                "round": one.round,
                "at": round(one.created_at),
                "goal": one.goal,
                "workspace": one.workspace,
            }
            for one in house.ledger.workflows(limit)
        ]
    print_jobs(found, "workflows", 15, as_json)


@workflow.command()
@click.argument("workflow_id", metavar="ID")
@click.option(
    "--what",
    type=click.Choice([part.value for part in WorkflowPart]),
    default="summary",
    show_default=True,
    help="What to read.",
)
@click.option("--step", type=_STEP, help="Whose.")
@_JSON
def show(workflow_id: str, what: str, step: str | None, as_json: bool) -> None:
    """A workflow, or a part of it."""
    with House.open() as house:
        print_workflow(_do(house, "status", workflow_id, what=what, step=step, limit=30_000), as_json)


@workflow.command()
@click.argument("workflow_id", metavar="ID")
def export(workflow_id: str) -> None:
    """A workflow with every step as JSON. It holds your plans and the answers."""
    from baton.workflow.export import exported

    with House.open() as house:
        echo_json(exported(house, house.ledger.workflow_named(workflow_id).workflow_id))


Doing = Callable[..., dict[str, Any]]


def _go(
    begin: Callable[[Doing], dict[str, Any]], wait: int, yes: bool, as_json: bool, ask: bool = True
) -> None:
    """Do the first call, then agree to what is shown for as long as the person does."""
    with House.open() as house:

        def doing(action: str, workflow_id: str | None = None, **arguments: Any) -> dict[str, Any]:
            return _do(house, action, workflow_id, **arguments)

        told = begin(doing)
        while ask and "confirm" in told:
            click.echo(due_text(told), err=as_json)
            if not yes and not click.confirm("send it?", err=True):
                break
            told = doing("next", told["workflowId"], confirm=told["confirm"], waitSeconds=wait)
        print_workflow(told, as_json)


def _do(house: House, action: str, workflow_id: str | None = None, **arguments: Any) -> dict[str, Any]:
    from baton.consult.service import ConsultService
    from baton.engine.service import Service
    from baton.review.service import ReviewService
    from baton.workflow.service import WorkflowService
    from baton.workflow.words import TerminalWords

    known = None if workflow_id is None else house.ledger.workflow_named(workflow_id)
    folder = str(Path.cwd()) if known is None else known.workspace
    given = {name: value for name, value in arguments.items() if value is not None}
    if known is not None:
        given["id"] = known.workflow_id
    words = TerminalWords()
    try:
        call = parse(WorkflowCall, {"action": action, **given}, "workflow")
    except InvalidInput as fault:
        raise renamed(fault, words.arguments, "workflow") from None

    async def ask() -> dict[str, Any]:
        consulting = ConsultService(house)
        service = WorkflowService(consulting, ReviewService(consulting), Service(house), words)
        return await service.workflow(call, Session(cwd=folder))

    return anyio.run(ask)


def _disposition(text: str) -> dict[str, str]:
    name, equals, rest = text.partition("=")
    what, _, reason = rest.partition(":")
    if not (name and equals and what):
        raise InvalidInput(f"--finding expects ID=DISPOSITION[:REASON], got {text!r}")
    return {"finding": name, "disposition": what, **({"reason": reason} if reason else {})}


def _text_of(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file}: cannot be read as text: {error}") from None
