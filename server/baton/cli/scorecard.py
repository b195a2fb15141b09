"""`baton scorecard`: how each reviewer answered, and what became of its findings."""

from __future__ import annotations

import time
from typing import Any

import click

from baton.cli.shown import echo_json
from baton.engine.house import House
from baton.ledger.consultations import DAY
from baton.ledger.reviews import Score


@click.command()
@click.option("--days", type=click.FloatRange(min=0), help="Only the last so many days.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def scorecard(days: float | None, as_json: bool) -> None:
    """By reviewer and model: asked, answered, kept and rejected findings, and serious ones nobody else had.

    Kept are findings marked fixed or accepted_risk when a review was finalised; nobody checks that. A hit
    rate needs ten decided findings. Rechecks do not count.
    """
    with House.open() as house:
        rows = house.ledger.scorecard(0.0 if days is None else time.time() - days * DAY)
    lines = [shown(row) for row in rows]
    if as_json:
        echo_json({"reviewers": lines})
        return
    if not rows:
        click.echo("nothing was reviewed yet")
    for line in lines:
        model = f" ({line['model']})" if line["model"] else ""
        sole = "-" if line["soleSerious"] is None else line["soleSerious"]
        rate = "" if line["hitRate"] is None else f", hit rate {line['hitRate']:.0%}"
        click.echo(
            f"{line['reviewer']}{model}: asked {line['asked']}, answered {line['answered']}, unparsed"
            f" {line['unparsed']}; findings {line['findings']}: kept {line['kept']}, rejected"
            f" {line['rejected']}, open {line['open']}{rate}; sole serious {sole}"
        )


def shown(row: Score) -> dict[str, Any]:
    """A row as JSON; unknown is null."""
    return {
        "reviewer": row.agent,
        "model": row.model,
        "asked": row.asked,
        "answered": row.answered,
        "unparsed": row.unparsed,
        "findings": row.findings,
        "kept": row.kept,
        "rejected": row.rejected,
        "open": row.open,
        "hitRate": None if row.hit_rate is None else round(row.hit_rate, 4),
        "soleSerious": row.sole_serious,
    }
