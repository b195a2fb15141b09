"""`baton usage`: what was spent, on what, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from baton.cli.amounts import tokens
from baton.cli.shown import echo_json, many_lines, one_line
from baton.engine.house import House
from baton.engine.spending_over_time import spending

UNKNOWN = "unknown"

Row = Mapping[str, Any]


@click.command()
@click.option(
    "--days",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True, max=36_500),
    help="Work begun in the last so many days.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def usage(days: float, as_json: bool) -> None:
    """Tokens by model, tier, role and repository: workers beside the supervisors, and verified work for them.

    Tokens of supervisors are those of the sessions that delegated, while their runs went on. Costs need
    prices in your policy. What is unknown is said to be so, and is never zero.
    """
    now = time.time()
    with House.open() as house:
        found = spending(house, now - days * 86_400, now)
    if as_json:
        echo_json({"days": days, **found})
        return
    for line in _lines(found, days):
        click.echo(line)
    if found["pricesFault"] is not None:
        click.echo(many_lines(f"costs are unknown: {found['pricesFault']}"), err=True)


def _lines(found: Mapping[str, Any], days: float) -> Iterator[str]:
    total = found["workers"]["total"]
    if total is None and not found["poolJobs"]["byModel"]:
        yield f"nothing was delegated in the last {days:g} days"
        return
    if total is not None:
        yield (
            f"workers, last {days:g} days: {total['tasks']} tasks, {total['verifiedTasks']} verified,"
            f" {total['count']} attempts, {_tokens(total)} tokens"
        )
        heads = {"byModel": "model", "byTier": "tier", "byRole": "role", "byRepository": "repository"}
        for key, head in heads.items():
            yield ""
            yield from _table(head, found["workers"][key], verified=True)
    if found["poolJobs"]["byModel"]:
        yield "\njobs of pools"
        yield from _table("model", found["poolJobs"]["byModel"], verified=False)
    yield "\nsupervisors, while their runs went on"
    rows = found["supervisors"]["byModel"]
    if not rows:
        yield f"  {UNKNOWN}: no session said which it was"
        return
    yield from _table("model", rows, verified=False)
    yield from _table("repository", found["supervisors"]["byRepository"], verified=False)


def _table(head: str, rows: Sequence[Row], *, verified: bool) -> Iterator[str]:
    cells = [[head, "attempts" if verified else "count", "tokens", "output", "cost"]]
    if verified:
        cells[0] += ["verified", "per M tokens"]
    for row in rows:
        line = [
            one_line(row["name"]) if row["name"] is not None else UNKNOWN,
            str(row["count"]),
            _tokens(row),
            _figure(row["usage"]["outputTokens"]),
            UNKNOWN if row["cost"] is None else f"{row['cost']:.2f}",
        ]
        if verified:
            rate = row["verifiedPerMillionTokens"]
            line += [f"{row['verifiedTasks']}/{row['tasks']}", UNKNOWN if rate is None else f"{rate:g}"]
        cells.append(line)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        rest = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        yield f"  {line[0].ljust(widths[0])}  {'  '.join(rest)}"


def _tokens(row: Row) -> str:
    """The sum as far as known; with a `+` when tokens of a part are not known."""
    total = row["usage"]["totalTokens"]
    return UNKNOWN if total is None else tokens(total, complete=not row["unknown"])


def _figure(count: int | None) -> str:
    return UNKNOWN if count is None else tokens(count)
