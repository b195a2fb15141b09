"""Starts a pool in this terminal: everything is checked first, then it runs and is shown to its end."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
import click

from baton.cli.pool_display import Display, Lines, LiveTable, Quiet, write_now
from baton.cli.shown import echo_json, many_lines
from baton.codex.binary import CodexBinary
from baton.contract.errors import StateUnavailable
from baton.contract.wording import many
from baton.engine.house import House
from baton.engine.models import find_models
from baton.ledger.pool_records import JobState, PoolState
from baton.pool.events import PoolEnd
from baton.pool.foreground import run_in_foreground
from baton.pool.jobs import Job
from baton.pool.opening import OpenPool, open_pool
from baton.pool.plan import launch_plan, make_run_root, write_plan
from baton.pool.present import resume_command, summary_json, summary_lines
from baton.pool.read import JobsRefused, read_jobs
from baton.pool.settings import PoolSettings
from baton.pool.settle import Flags, settle
from baton.pool.status import PoolStatus, pool_status
from baton.workspace.git import Git

INTERRUPTED_STATUS = 130
"""Exit status when a signal ended it, as a shell has it."""


@dataclass(frozen=True)
class Launch:
    """Everything that a pool is started with."""

    file: Path
    settings: PoolSettings
    jobs: list[Job]
    codex: CodexBinary


def prepare(house: House, file: Path, flags: Flags) -> Launch:
    """Check everything there is to check, before anything is started or made.

    Exits with status 2 for a job file with faults, each of them told. Raises `BatonError`.
    """
    settled = settle(file, flags, house.codex_home, Path.cwd(), Path.home())
    codex, models = anyio.run(find_models, house)
    try:
        jobs = read_jobs(file, settled.settings, settled.policy, models, Git.find())
    except JobsRefused as refused:
        for line in refused.lines:
            click.echo(many_lines(line), err=True)
        faults = many(len(refused.lines), "fault")
        click.echo(f"baton: {faults} in {file}; nothing was run", err=True)
        click.get_current_context().exit(2)
    return Launch(file, settled.settings, jobs, codex)


def run(house: House, launch: Launch, as_json: bool) -> int:
    """Run what was prepared; the exit status."""
    settings = launch.settings
    try:
        make_run_root(settings.run_dir, settings.project)
    except OSError as error:
        raise StateUnavailable(
            f"the run directory {settings.run_dir} cannot be made ({error.strerror}); give --run-dir"
        ) from None
    with open_pool(house, launch.file, settings.run_dir, launch.jobs, settings) as opened:
        _keep_plan(launch)
        pool_id = opened.record.pool_id
        if not as_json:
            left = house.ledger.pool_counts(pool_id).get(JobState.QUEUED, 0)
            click.echo(begun_line(opened, left, len(launch.jobs) - opened.skipped - left, settings.run_dir))
            for note in settings.notes:
                click.echo(many_lines(f"note: {note}"))

        def look() -> PoolStatus:
            return pool_status(house, pool_id)

        with _display(as_json)(look) as display:

            def forced() -> None:
                display.abandon()
                write_now(sys.stderr, f"baton: ended by force; go on: {resume_command(opened.record)}\n")

            end = run_in_foreground(house, opened, launch.jobs, settings, display.tell, forced=forced)
    record = house.ledger.pool(pool_id)
    tokens = house.ledger.pool_tokens(pool_id)
    if as_json:
        echo_json(summary_json(end, record, tokens))
    else:
        for line in summary_lines(end, record, tokens):
            click.echo(many_lines(line))
    return exit_status(end)


def begun_line(opened: OpenPool, left: int, at_rest: int, run_dir: Path) -> str:
    """What an invocation is about to do. `at_rest` jobs did not succeed and run again only by name."""
    parts = [f"{many(left, 'job')} to run"]
    if opened.skipped:
        parts.append(f"{many(opened.skipped, 'is', 'are')} done already")
    if at_rest:
        parts.append(many(at_rest, "waits for you to name it", "wait for you to name them"))
    return f"pool {opened.pool_id}: {', '.join(parts)}; run directory {run_dir}"


def exit_status(end: PoolEnd) -> int:
    """0 when every job has succeeded, 130 when a signal ended it, else 1."""
    if end.succeeded:
        return 0
    return INTERRUPTED_STATUS if end.state is PoolState.INTERRUPTED else 1


def _keep_plan(launch: Launch) -> None:
    try:
        write_plan(launch.settings.run_dir, launch_plan(launch.jobs, launch.settings, launch.codex))
    except OSError as error:
        raise StateUnavailable(
            f"{launch.settings.run_dir} cannot be written in ({error.strerror}); give another --run-dir"
        ) from None


def _display(as_json: bool) -> type[Display]:
    if as_json:
        return Quiet
    return LiveTable if sys.stdout.isatty() and os.environ.get("TERM") != "dumb" else Lines
