"""`baton export`: one consultation with everything it owns."""

from __future__ import annotations

import click

from baton.cli.shown import echo_json
from baton.consult.export import exported
from baton.engine.house import House


@click.command()
@click.argument("consultation", metavar="ID")
@click.option("--prompts", is_flag=True, help="With the whole texts that were sent.")
def export(consultation: str, prompts: bool) -> None:
    """One consultation as JSON; the beginning of its id will do.

    It holds your questions and the answers: treat it as you would the state folder.
    """
    with House.open() as house:
        name = house.ledger.consultation_named(consultation).consultation_id
        echo_json(exported(house, name, prompts=prompts))
