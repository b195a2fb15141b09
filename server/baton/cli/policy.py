"""`baton policy`: the policy and what is rendered from it."""

from __future__ import annotations

import click

from baton.policy.render import render_command


@click.group()
def policy() -> None:
    """The policy, and the skills and agents rendered from it."""


@policy.command()
@click.option("--check", "check_only", is_flag=True, help="Change nothing; fail when a file differs.")
@click.pass_context
def render(ctx: click.Context, check_only: bool) -> None:
    """Render skills, agents and schema of this bundle from its policy."""
    ctx.exit(render_command(check_only, click.echo))
