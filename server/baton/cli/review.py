"""`baton review`: reviews from a terminal; the person at it is asked before anything is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import click

from baton.cli.group import Group
from baton.cli.listing import print_jobs
from baton.cli.shown import echo_json, many_lines, one_line
from baton.contract.argument_names import renamed
from baton.contract.base import parse
from baton.contract.errors import InvalidInput, NotAllowed
from baton.contract.review import ReviewCall
from baton.contract.session import Session
from baton.engine.house import House
from baton.review.confirm import Person, Says

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_WAIT = click.option(
    "--wait", default=240, show_default=True, type=click.IntRange(0, 280), help="Seconds to wait."
)
_YES = click.option("--yes", is_flag=True, help="Send without asking.")
_SECRETS = click.option("--send-secrets", is_flag=True, help="Send code with what looks like credentials.")


@click.group(cls=Group)
def review() -> None:
    """Reviews of work by other agents."""


@review.command()
@click.argument("goal")
@click.option("--diff", "diff_ref", metavar="REF", help="A..B, A...B or a commit.")
@click.option("--path", "paths", multiple=True, help="A file; with --diff, what it is limited to.")
@click.option("--run", "run_id", metavar="RUN", help="What a run changed.")
@click.option("--reviewer", "reviewers", multiple=True, help="An agent; may be repeated.")
@click.option("--deep", is_flag=True, help="Several reviewers.")
@click.option("--persona", help="A way to look at it, by its name in the policy.")
@_WAIT
@_YES
@_SECRETS
@_JSON
def start(
    goal: str,
    diff_ref: str | None,
    paths: tuple[str, ...],
    run_id: str | None,
    reviewers: tuple[str, ...],
    deep: bool,
    persona: str | None,
    wait: int,
    yes: bool,
    send_secrets: bool,
    as_json: bool,
) -> None:
    """Show what would be sent, ask, send it, and show the findings."""
    asked: dict[str, Any] = {
        "goal": goal,
        "diffRef": diff_ref,
        "paths": list(paths),
        "runId": run_id,
        "reviewers": list(reviewers),
        "mode": "deep" if deep else "standard",
        "persona": persona,
        "ownFindings": [] if deep else None,
    }
    with House.open() as house:
        plan = _do(house, "plan", **asked)
        _send(house, plan, wait, yes, send_secrets, as_json)


@review.command("list")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="How many.")
@_JSON
def list_(limit: int, as_json: bool) -> None:
    """Reviews, the newest first, with their ids."""
    with House.open() as house:
        found = [
            {
                "id": one.review_id,
                "state": one.state.value,
                "mode": one.mode.value,
                "at": round(one.created_at),
                "goal": one.goal,
                "parent": one.parent,
            }
            for one in house.ledger.reviews(limit)
        ]
    print_jobs(found, "reviews", 18, as_json)


@review.command()
@click.argument("review_id", metavar="REVIEW")
@click.option(
    "--what",
    type=click.Choice(["summary", "findings", "answer", "history", "material"]),
    default="summary",
    show_default=True,
    help="What to read.",
)
@_JSON
def show(review_id: str, what: str, as_json: bool) -> None:
    """A review, or a part of it."""
    with House.open() as house:
        told = _window(house, review_id, what, 0)
        # A terminal has room for all of it.
        while "nextOffset" in told:
            more = _window(house, review_id, what, told.pop("nextOffset"))
            joined = {name: told[name] + more[name] for name in ("text", what) if name in more}
            told |= joined | {name: more[name] for name in ("nextOffset",) if name in more}
        told.pop("bytes", None)
    _print(told, as_json)


def _window(house: House, review_id: str, what: str, offset: int) -> dict[str, Any]:
    return _do(house, "status", review_id, what=what, waitSeconds=0, limit=30_000, offset=offset)


@review.command()
@click.argument("review_id", metavar="REVIEW")
@click.argument("decisions", nargs=-1, metavar="[F1=fixed|open|rejected:REASON|accepted_risk:REASON]...")
@click.option("--conclusion", help="What you conclude.")
@_JSON
def finalise(review_id: str, decisions: tuple[str, ...], conclusion: str | None, as_json: bool) -> None:
    """Say what becomes of each finding; every critical and important one needs a word."""
    dispositions = []
    for decision in decisions:
        finding, found, rest = decision.partition("=")
        if not found:
            raise InvalidInput(f"{decision!r} is not like F1=fixed or F1=rejected:reason")
        disposition, _, reason = rest.partition(":")
        dispositions.append({"finding": finding, "disposition": disposition, "reason": reason or None})
    with House.open() as house:
        told = _do(house, "finalise", review_id, dispositions=dispositions, conclusion=conclusion)
    _print(told, as_json)


@review.command()
@click.argument("review_id", metavar="REVIEW")
@click.option("--reviewer", help="This one alone.")
@_WAIT
@_JSON
def retry(review_id: str, reviewer: str | None, wait: int, as_json: bool) -> None:
    """Ask reviewers again whose findings are missing, word for word what was agreed to."""
    with House.open() as house:
        told = _do(house, "retry", review_id, reviewer=reviewer, waitSeconds=wait)
    _print(told, as_json)


@review.command()
@click.argument("review_id", metavar="REVIEW")
@click.option("--diff", "diff_ref", metavar="REF", help="Another diff than the one reviewed, as it is now.")
@_WAIT
@_YES
@_SECRETS
@_JSON
def recheck(
    review_id: str, diff_ref: str | None, wait: int, yes: bool, send_secrets: bool, as_json: bool
) -> None:
    """Have a finalised review's open and fixed findings looked at again."""
    with House.open() as house:
        plan = _do(house, "recheck", review_id, diffRef=diff_ref)
        _send(house, plan, wait, yes, send_secrets, as_json)


@review.command()
@click.argument("review_id", metavar="REVIEW")
def cancel(review_id: str) -> None:
    """Stop a review that is at work; what came is kept."""
    with House.open() as house:
        found = house.ledger.review(review_id)
        if found.consultation_id is None:
            click.echo(f"nothing is at work for {review_id}; it is {found.state.value}")
            return
        house.ledger.ask_to_cancel(found.consultation_id)
        told = _do(house, "status", review_id, waitSeconds=60)
    _print(told, False)


def _send(house: House, plan: dict[str, Any], wait: int, yes: bool, secrets: bool, as_json: bool) -> None:
    if not as_json:
        _print({name: value for name, value in plan.items() if name not in ("confirm", "next")}, False)
    if plan["secrets"] and not secrets:
        raise NotAllowed(
            f"the material holds what looks like credentials: {', '.join(plan['secrets'])}; nothing was sent;"
            " take them out, or give --send-secrets to send it as it is"
        )
    sent = {"waitSeconds": wait} | ({"secrets": "send"} if secrets else {})
    told = _do(house, "run", plan["reviewId"], _terminal(yes), **sent)
    _print(told, as_json)


def _terminal(yes: bool) -> Person:
    """The person at the terminal: `--yes` is their word too."""

    async def ask(text: str) -> Says:
        if yes:
            return Says.YES
        return Says.YES if click.confirm(many_lines(text), default=False, err=True) else Says.NO

    return ask


def _do(
    house: House, action: str, review_id: str | None = None, person: Person | None = None, **arguments: Any
) -> dict[str, Any]:
    from baton.consult.service import ConsultService
    from baton.review.confirm import nobody
    from baton.review.service import ReviewService
    from baton.review.words import TerminalWords

    given = {name: value for name, value in arguments.items() if value is not None}
    words = TerminalWords()
    try:
        named = {"action": action, **given} | ({"id": review_id} if review_id else {})
        call = parse(ReviewCall, named, "review")
    except InvalidInput as fault:
        raise renamed(fault, words.arguments, "review") from None
    session = Session(cwd=str(Path.cwd()))
    service = ReviewService(ConsultService(house), words)
    doing: Callable[[], Awaitable[dict[str, Any]]] = lambda: service.review(call, session, person or nobody)  # noqa: E731
    return anyio.run(doing)


def _print(told: dict[str, Any], as_json: bool) -> None:
    if as_json:
        echo_json(told)
        return
    if isinstance(told.get("text"), str):
        click.echo(many_lines(told["text"]))
        return
    for name, value in told.items():
        if name == "findings" and isinstance(value, list):
            for one in value:
                _print_finding(one)
        elif isinstance(value, list) and len(value) > 1 and isinstance(value[0], dict):
            click.echo("\n".join([f"{name}:", *(f"  {one_line(_plain(one))}" for one in value)]))
        elif value is not None:
            click.echo(f"{name}: {one_line(_plain(value))}")


def _print_finding(one: dict[str, Any]) -> None:
    place = f" {one_line(one['place'])}" if "place" in one else ""
    became = f" [{one['disposition']}]" if "disposition" in one else ""
    click.echo(f"{one['id']} {one['severity']}{place}{became} ({one['by']}): {one_line(one['title'])}")
    if "detail" in one:
        click.echo(many_lines("\n".join(f"    {line}" for line in one["detail"].splitlines())))


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_plain(one)}" for name, one in value.items() if one is not None)
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return str(value)
