"""Lists of jobs with a goal: a line for each, or all as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from baton.cli.amounts import when
from baton.cli.shown import echo_json, one_line


def print_jobs(found: Sequence[dict[str, Any]], what: str, width: int, as_json: bool) -> None:
    """Print jobs as dicts of at least `id`, `at`, `state` and `goal`; a state takes up to `width` columns."""
    if as_json:
        echo_json(list(found))
        return
    if not found:
        click.echo(f"no {what} yet")
    for one in found:
        click.echo(f"{one['id']}  {when(one['at'])}  {one['state']:<{width}}  {one_line(one['goal'])}")
