"""The flags of `baton pool run`, those of the earlier batch runner among them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def pool_flags(command: F) -> F:
    """Give a command all of them; each arrives as the attribute of `Flags` of that name."""
    path = click.Path(path_type=Path)
    for option in reversed(
        (
            click.option("--config", type=path, metavar="FILE", help="Another orchestration.toml; it wins."),
            click.option("--run-dir", type=path, metavar="DIR", help="Where this pool is kept."),
            click.option("--project", type=path, metavar="DIR", help="What relative folders start from."),
            click.option(
                "--mode",
                type=click.Choice(["conservative", "balanced", "large"]),
                help="How many jobs at once.",
            ),
            click.option("--concurrency", type=click.IntRange(min=1), help="Jobs at once."),
            click.option("--write-concurrency", type=click.IntRange(min=1), help="Writers at once."),
            click.option(
                "--allow-disjoint-parallel-writers",
                is_flag=True,
                help="Let writers run at once whose declared scopes are disjoint.",
            ),
            click.option(
                "--timeout",
                "timeout_seconds",
                type=click.FloatRange(min=0, min_open=True),
                help="Seconds for one attempt of a job that names no time.",
            ),
            click.option(
                "--total",
                "total_seconds",
                type=click.FloatRange(min=0, min_open=True),
                help="Seconds for this invocation.",
            ),
            click.option("--retries", type=click.IntRange(min=0, max=100), help="Attempts after the first."),
            click.option(
                "--backoff",
                "backoff_seconds",
                type=click.FloatRange(min=0),
                help="Seconds before the first retry; doubled for each further one.",
            ),
            click.option("--backend", type=click.Choice(["app-server", "exec"]), help="What runs the jobs."),
            click.option(
                "--token-budget", type=click.IntRange(min=1), help="Tokens of all attempts together."
            ),
        )
    ):
        command = option(command)
    return command
