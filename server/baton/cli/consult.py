"""`baton consult`: switch second opinions on, and see who can be asked."""

from __future__ import annotations

import json

import anyio
import click

from baton.cli.group import Group
from baton.cli.pairs import read_pairs
from baton.consult.find import Found, find_agents
from baton.consult.setup import set_up
from baton.engine.house import House
from baton.policy.load import load_policy


@click.group(cls=Group)
def consult() -> None:
    """Second opinions from other agents on this machine."""


@consult.command()
@click.option("--model", "models", multiple=True, metavar="AGENT=MODEL", help="Name an agent's model; again.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def setup(models: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Switch consultation on in your policy, and say which agents are here and logged in.

    What an agent is asked goes to its provider, under your login there.
    """
    with House.open() as house:
        done = set_up(house.codex_home, read_pairs(models, "--model", "AGENT=MODEL"), dry_run=dry_run)
        found = _find(house)
    if as_json:
        data = {
            "file": str(done.file),
            "changes": list(done.changes),
            "agents": [one.wire() for one in found],
            **({"note": done.note} if done.note else {}),
        }
        click.echo(json.dumps({**data, "dryRun": dry_run}, ensure_ascii=False))
        return
    verb = "would write" if dry_run else "wrote"
    for change in done.changes:
        click.echo(f"{verb} {change} into {done.file}")
    if done.note:
        click.echo(done.note)
    if not done.changes:
        click.echo(f"{done.file} says so already")
    _tell(found)
    if not any(one.usable for one in found):
        click.echo("nobody can be asked yet: install one of these, or log in, as shown")


@consult.command("agents")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def list_agents(as_json: bool) -> None:
    """Which agents' command lines are here, their versions and logins; no model is asked."""
    with House.open() as house:
        found = _find(house)
    if as_json:
        click.echo(json.dumps([one.wire() for one in found], ensure_ascii=False))
    else:
        _tell(found)


def _find(house: House) -> list[Found]:
    rules = load_policy(house.codex_home, None).consult

    async def find() -> list[Found]:
        return await find_agents(house, names=rules.pass_to_agents)

    return anyio.run(find)


def _tell(found: list[Found]) -> None:
    for one in found:
        sign = "ok  " if one.usable else "--  "
        click.echo(f"{sign}  {one.runtime.value:<12} {one.version or 'not here':<10} {one.detail}")
        if one.action is not None:
            click.echo(f"      -> {one.action}")
