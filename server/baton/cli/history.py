"""`baton history`: what other agents were asked."""

from __future__ import annotations

import click

from baton.cli.amounts import when
from baton.cli.shown import echo_json, one_line
from baton.consult.launch import recover_consultations
from baton.consult.present import listed
from baton.consult.records import delete
from baton.contract.wording import many
from baton.engine.house import House


@click.command()
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="How many.")
@click.option("--kind", help="Only what was asked for this kind of work, such as consultation.")
@click.option("--delete", "doomed", metavar="ID", help="Forget one, after asking; its beginning will do.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def history(limit: int, kind: str | None, doomed: str | None, yes: bool, as_json: bool) -> None:
    """Consultations, the newest first, with their ids.

    With --delete one goes with its text and artifacts. What the agents' own programs and providers keep
    stays with them.
    """
    with House.open() as house:
        recover_consultations(house)
        if doomed is not None:
            _delete(house, doomed, yes)
            return
        found = [
            listed(one, house.ledger.consult_turns(one.consultation_id))
            for one in house.ledger.consultations(limit, kind=kind)
        ]
    if as_json:
        echo_json(found)
        return
    if not found:
        click.echo("no consultations yet")
    for line in found:
        cost = "cost unknown" if line["costUsd"] is None else f"{line['costUsd']:.4f} USD"
        title = one_line(line["title"]) if line["title"] else "(text is not kept)"
        agents = ", ".join(line["agents"])
        click.echo(f"{line['id']}  {when(line['at'])}  {line['state']:<11}  {agents}  {cost}  {title}")


def _delete(house: House, beginning: str, yes: bool) -> None:
    consultation = house.ledger.consultation_named(beginning)
    name = consultation.consultation_id
    turns = len(house.ledger.consult_turns(name))
    about = one_line(consultation.title or "(text is not kept)")
    if not yes:
        click.confirm(f"forget {name}, {many(turns, 'turn')}: {about}?", abort=True)
    freed = delete(house, name)
    click.echo(f"forgot {name}; {many(freed, 'byte')} of artifacts removed")
