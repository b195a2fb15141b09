"""`baton agents`: the presets that Codex finds, and how they stand to what Baton ships."""

from __future__ import annotations

import os
from pathlib import Path

import click

from baton.cli.shown import echo_json, many_lines
from baton.install import surroundings
from baton.install.overview import agents_in
from baton.install.places import Places
from baton.install.shipped import Package
from baton.policy.bundle import bundle_root


@click.command()
@click.option(
    "--project", type=click.Path(path_type=Path), metavar="DIR", help="The project's agents as well."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def agents(project: Path | None, as_json: bool) -> None:
    """The agents in your Codex home: model, effort, and whether each is as shipped, edited or stale."""
    env = dict(os.environ)
    places = Places.find(env)
    codex, why = surroundings.find_or_why(env, places)
    presets = Package(bundle_root()).presets(places, codex.models if codex else None)
    found = agents_in(places, project, presets, codex.models if codex else None)
    if as_json:
        echo_json([agent.wire() for agent in found])
        return
    for agent in found:
        route = f"{agent.model or 'the session’s model'} {agent.effort or ''}".strip()
        click.echo(many_lines(f"{agent.name:<22} {route:<28} {agent.state:<12} {agent.file}"))
    if not found:
        click.echo(f"no agents in {places.home / 'agents'}; `baton install` puts Baton's there")
    if why is not None:
        click.echo(many_lines(f"models were not looked up: {why}"))
