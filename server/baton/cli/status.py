"""`baton status`: what is installed and what is going on, at a glance."""

from __future__ import annotations

import os
from typing import Any

import click

from baton import __version__
from baton.cli.shown import echo_json
from baton.engine.house import House
from baton.install.overview import overview
from baton.install.places import Places
from baton.ledger.locks import is_held
from baton.runtime.places import Environment, own_environment

RUNS = 200
"""The newest runs are looked at; the rest is for `baton runs list`."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status(as_json: bool) -> None:
    """What is installed, from where this program runs, and how many runs are at work or wait for you."""
    env = dict(os.environ)
    found = overview(Places.find(env))
    with House.open(env) as house:
        runs = house.ledger.runs(RUNS)
        working = sum(is_held(house.state.run_lock(run.run_id)) for run in runs)
        waiting = sum(run.state.value in ("held", "interrupted") for run in runs)
        data: dict[str, Any] = {
            "program": __version__,
            "environment": _environment(own_environment()),
            "installed": found,
            "state": str(house.state.root),
            "runs": {"working": working, "waitingForYou": waiting},
        }
    if as_json:
        echo_json(data)
        return
    click.echo(f"program    baton {data['program']} ({data['environment'] or 'a development environment'})")
    _tell_installed(found)
    click.echo(f"state      {data['state']}")
    click.echo(f"runs       {working} at work, {waiting} held or interrupted")


def _tell_installed(found: dict[str, Any]) -> None:
    if found["version"] is None and found["plugin"] is None:
        click.echo(f"installed  nothing in {found['home']}; see `baton install --help`")
        return
    if found["version"] is not None:
        changed = f", {found['changedFiles']} edited or deleted" if found["changedFiles"] else ""
        click.echo(f"installed  {found['version']} in {found['home']}: {found['files']} files{changed}")
    else:
        click.echo(f"installed  as a plugin of {found['home']}")
    click.echo(f"server     {_server(found)}")
    for project in found["projects"]:
        click.echo(f"project    {project}: agents")
    if found["command"]:
        click.echo(f"command    {found['command']}")
    if found["interrupted"]:
        click.echo("note       an installation was cut short: run `baton doctor --fix`")


def _server(found: dict[str, Any]) -> str:
    if found["plugin"]:
        return f"by the plugin {found['plugin']}"
    return "by config.toml" if found["server"] else "none in Codex's configuration"


def _environment(environment: Environment | None) -> str | None:
    return environment.root if environment is not None else None
