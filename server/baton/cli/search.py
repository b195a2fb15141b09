"""`baton search`: which agent said that?"""

from __future__ import annotations

import time
from typing import Any

import click

from baton.cli.amounts import when
from baton.cli.shown import echo_json, one_line
from baton.engine.house import House
from baton.ledger.consultations import DAY, Hit


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 25), help="How many.")
@click.option("--days", type=click.FloatRange(min=0), help="Only the last so many days.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def search(words: tuple[str, ...], limit: int, days: float | None, as_json: bool) -> None:
    """Questions and answers that hold every word, the best first.

    Words are only words, and their other endings count as well. Where `consult.store_full_content` is false
    no text is kept, and nothing is found.
    """
    since = 0.0 if days is None else time.time() - days * DAY
    with House.open() as house:
        hits = house.ledger.search_consultations(" ".join(words), limit, since)
    if as_json:
        echo_json([_wire(hit) for hit in hits])
        return
    if not hits:
        click.echo("nothing found")
    for hit in hits:
        model = f" ({hit.model})" if hit.model else ""
        where = f"{hit.consultation_id} turn {hit.number}"
        click.echo(f"{where}  {when(hit.at)}  {hit.agent}{model}: {one_line(hit.excerpt)}")


def _wire(hit: Hit) -> dict[str, Any]:
    return {
        "id": hit.consultation_id,
        "turn": hit.number,
        "agent": hit.agent,
        "model": hit.model,
        "at": round(hit.at),
        "excerpt": hit.excerpt,
    }
