"""`baton policy`: the policy in force, its faults, and what is rendered from it."""

from __future__ import annotations

from pathlib import Path

import click

from baton.cli.group import Group
from baton.cli.shown import echo_json, many_lines
from baton.policy.check import policy_faults
from baton.policy.layer import Origin
from baton.policy.load import load_layers, person_home
from baton.policy.narrowing import shown
from baton.policy.render import render_command

_project = click.option(
    "--project",
    type=click.Path(path_type=Path),
    help="A project's folder, whose .codex/baton.toml narrows the policy. Default: the current folder.",
)


@click.group(cls=Group)
def policy() -> None:
    """The policy, and the skills and agents rendered from it."""


@policy.command()
@_project
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def show(project: Path | None, as_json: bool) -> None:
    """Every value in force, and the file it comes from."""
    layered = load_layers(person_home(), _folder(project))
    values = list(layered.values())
    if as_json:
        listed = [
            {"key": key, "value": value, "layer": origin.layer.value, "file": str(origin.file)}
            for key, value, origin in values
        ]
        echo_json(listed)
        return
    files = dict.fromkeys(origin for _, _, origin in values)
    for origin in files:
        click.echo(many_lines(f"{origin.layer:<8} {origin.file}"))
    click.echo()
    for key, value, origin in values:
        click.echo(many_lines(_line(key, value, origin)))


@policy.command()
@_project
@click.pass_context
def check(ctx: click.Context, project: Path | None) -> None:
    """Tell every fault of the policy in force, each in one line; exit status 1 when there is any.

    Without one it names the files that were checked.
    """
    faults = policy_faults(person_home(), _folder(project))
    for fault in faults:
        click.echo(many_lines(fault))
    if not faults:
        layers = load_layers(person_home(), _folder(project)).layers
        read = ", ".join(f"{origin.file} ({origin.layer.value})" for origin in layers)
        click.echo(many_lines(f"no faults; checked: {read}"))
    ctx.exit(1 if faults else 0)


@policy.command()
@click.option("--check", "check_only", is_flag=True, help="Change nothing; fail when a file differs.")
@click.pass_context
def render(ctx: click.Context, check_only: bool) -> None:
    """Render skills, agents and schema of this bundle from its policy."""
    ctx.exit(render_command(check_only, click.echo))


def _folder(project: Path | None) -> Path:
    return (project or Path.cwd()).absolute()


def _line(key: str, value: object, origin: Origin) -> str:
    return f"{origin.layer:<8} {key} = {shown(value)}"
