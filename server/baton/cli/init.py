"""`baton init`: the line that registers Baton's server with the program one works in."""

from __future__ import annotations

import contextlib
import json
import os

import click

from baton.contract.errors import InvalidInput
from baton.install.host import HOSTS, registration, shown
from baton.install.places import Places
from baton.policy.bundle import bundle_root
from baton.policy.load import load_policy


@click.command()
@click.option("--host", type=click.Choice(HOSTS), default="codex", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def init(host: str, as_json: bool) -> None:
    """Print how to register Baton's server with Codex, Claude Code or OpenCode; nothing is changed."""
    env = dict(os.environ)
    places = Places.find(env)
    found = registration(host, places, env, bundle_root())
    if as_json:
        click.echo(json.dumps(found.wire(), ensure_ascii=False))
        return
    if found.line is not None:
        click.echo(found.line)
    elif found.entry is not None:
        click.echo(f"# into {found.file}:", err=True)
        click.echo(shown(found.entry))
    if host == "codex":
        click.echo("# `baton install` does this and more: skills, agents, tool time-outs", err=True)
    with contextlib.suppress(InvalidInput):  # `baton policy check` tells what is wrong there
        if not load_policy(places.home, None).consult.enabled:
            click.echo("# second opinions are off; `baton consult setup` switches them on", err=True)
