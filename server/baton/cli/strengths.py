"""`baton strengths`: who did well at what."""

from __future__ import annotations

import time

import click

from baton.cli.shown import echo_json
from baton.consult.strengths import shown, worth_a_look
from baton.engine.house import House
from baton.ledger.consultations import DAY


@click.command()
@click.option("--days", type=click.FloatRange(min=0), help="Only the last so many days.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def strengths(days: float | None, as_json: bool) -> None:
    """By kind of question, agent and model: asked, answered, failed, time and cost.

    Below the table: what may be worth a look. Nothing is changed by it, and nothing here says whose answers
    were better.
    """
    with House.open() as house:
        rows = house.ledger.consult_strengths(0.0 if days is None else time.time() - days * DAY)
    lines = [shown(row) for row in rows]
    if as_json:
        echo_json({"rows": lines, "worthALook": worth_a_look(rows)})
        return
    if not rows:
        click.echo("nobody was asked yet")
    for line in lines:
        model = f" ({line['model']})" if line["model"] else ""
        took = "-" if line["seconds"] is None else f"{line['seconds']:.0f} s"
        rate = "" if line["failureRate"] is None else f" ({line['failureRate']:.0%})"
        cost = _cost(line["costUsd"], line["knownCostUsd"])
        click.echo(
            f"{line['capability']:<16}  {line['agent']}{model}: asked {line['asked']}, answered"
            f" {line['answered']}, failed {line['failed']}{rate}, {took}, {cost}"
        )
    for text in worth_a_look(rows):
        click.echo(f"worth a look: {text}")


def _cost(whole: float | None, known: float | None) -> str:
    if whole is not None:
        return f"{whole:.4f} USD"
    return "cost unknown" if known is None else f"cost unknown, {known:.4f} USD of it known"
