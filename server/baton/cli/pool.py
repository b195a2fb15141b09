"""`baton pool`: job files run to their end, and what became of every job."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import click

from baton.cli.group import Group
from baton.cli.pool_display import picture
from baton.cli.pool_flags import pool_flags
from baton.cli.pool_launch import prepare
from baton.cli.pool_launch import run as run_launch
from baton.cli.shown import echo_json, many_lines
from baton.contract.errors import InvalidInput
from baton.engine.house import House
from baton.ledger.pool_records import PoolRecord
from baton.policy.bundle import bundle_root
from baton.pool.control import ask_again, cancel, find_pool
from baton.pool.export import export as export_pool
from baton.pool.look import job_json, job_lines
from baton.pool.plan import launch_plan, plan_lines
from baton.pool.present import progress_line, status_json, status_lines
from baton.pool.settle import Flags, recorded_flags
from baton.pool.status import pool_status

_path = click.Path(path_type=Path)
_json = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_pool = click.argument("pool", metavar="[POOL]", required=False)


@click.group(cls=Group)
def pool() -> None:
    """Job files: many like jobs, run to the end through limits, crashes and reboots."""


@pool.command()
@click.argument("jobs", type=_path, metavar="JOBS.jsonl")
@pool_flags
@click.option("--dry-run", is_flag=True, help="Check everything and show the plan; start nothing.")
@_json
@click.pass_context
def run(ctx: click.Context, /, jobs: Path, dry_run: bool, as_json: bool, **flags: Any) -> None:
    """Run a job file in this terminal; the same command again goes on where it stopped.

    Exit status 0 when every job succeeded, 1 when one did not or the pool stopped, 2 when something is wrong
    with the command, the file or the settings (nothing was run then), 130 when a signal ended it.
    """
    with House.open() as house:
        launch = prepare(house, jobs.absolute(), Flags(**flags))
        if not dry_run:
            ctx.exit(run_launch(house, launch, as_json))
        if as_json:
            echo_json(launch_plan(launch.jobs, launch.settings, launch.codex))
            return
        for line in plan_lines(launch.jobs, launch.settings, launch.codex):
            click.echo(many_lines(line))


@pool.command()
@click.argument("pool", metavar="POOL")
@click.argument("job_ids", metavar="[JOB]...", nargs=-1)
@_json
@click.pass_context
def retry(ctx: click.Context, pool: str, job_ids: tuple[str, ...], as_json: bool) -> None:
    """Run jobs again that did not succeed, with the flags of the pool's latest run.

    Without JOB: all of them but writers that may have written already. Those run again only by name.
    """
    with House.open() as house:
        record = find_pool(house, pool)
        if not os.path.lexists(record.jobs_file):
            raise InvalidInput(
                f"{record.jobs_file}, the job file of pool {record.pool_id}, is gone; when it was moved, give"
                " `baton pool run` its new place first"
            )
        recorded = record.settings.get("flags")
        flags = recorded_flags(recorded) if isinstance(recorded, dict) else Flags()
        launch = prepare(house, Path(record.jobs_file), flags)
        asked = ask_again(house, record.pool_id, list(job_ids))
        if not as_json:
            click.echo(
                f"asked for again: {', '.join(asked[:20]) or 'no job'}{' …' if len(asked) > 20 else ''}"
            )
        ctx.exit(run_launch(house, launch, as_json))


@pool.command()
@_pool
@_json
def status(pool: str | None, as_json: bool) -> None:
    """Where a pool is: the latest one, or POOL (an id, a job file or a run directory)."""
    with House.open() as house:
        found = pool_status(house, _find(house, pool).pool_id)
    if as_json:
        echo_json(status_json(found))
        return
    for line in status_lines(found):
        click.echo(many_lines(line))


@pool.command()
@_pool
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, whenever something changed.")
def watch(pool: str | None, as_json: bool) -> None:
    """Follow a pool that runs elsewhere, until it ends; Ctrl+C ends only the watching."""
    with House.open() as house:
        anyio.run(_watch, house, _find(house, pool).pool_id, as_json)


@pool.command(name="cancel")
@_pool
@_json
def cancel_command(pool: str | None, as_json: bool) -> None:
    """End a pool, running or not; what is done stays, and running it again goes on."""
    with House.open() as house:
        record = _find(house, pool)
        done = cancel(house, record.pool_id)
        found = pool_status(house, record.pool_id)
    if as_json:
        echo_json(status_json(found))
        return
    click.echo(f"{record.pool_id}: {done}")


@pool.command()
@_pool
@click.option("--to", "target", type=_path, metavar="DIR", help="Default: the pool's run directory.")
@_json
def export(pool: str | None, target: Path | None, as_json: bool) -> None:
    """Write manifest.json, and for each attempt its events and its final message, as files."""
    with House.open() as house:
        record = _find(house, pool)
        manifest = export_pool(house, record, (target or Path(record.run_dir)).absolute())
    if as_json:
        echo_json({"poolId": record.pool_id, "manifest": str(manifest)})
        return
    click.echo(str(manifest))


@pool.command()
@click.argument("job", metavar="JOB")
@click.option("--pool", "named", metavar="POOL", help="Default: the latest one.")
@_json
def show(job: str, named: str | None, as_json: bool) -> None:
    """One job: its attempts, why they ended so, its final message and where its events are."""
    with House.open() as house:
        record = _find(house, named)
        if as_json:
            echo_json(job_json(house, record.pool_id, job))
            return
        for line in job_lines(house, record.pool_id, job):
            click.echo(many_lines(line))


@pool.command(name="list")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="How many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def list_pools(limit: int, as_json: bool) -> None:
    """The newest pools first."""
    with House.open() as house:
        found = [pool_status(house, record.pool_id) for record in house.ledger.pools(limit)]
    if as_json:
        echo_json([status_json(one) for one in found])
        return
    if not found:
        click.echo("no pools yet")
    for one in found:
        pool_id, state = one.record.pool_id, one.record.state.value
        click.echo(many_lines(f"{pool_id}  {state:<11}  {progress_line(one)}  {one.record.jobs_file}"))


@pool.command()
@click.argument("folder", type=_path, metavar="DIR")
def examples(folder: Path) -> None:
    """Copy the example job files and the example configuration into a folder; nothing there is replaced."""
    root = bundle_root()
    sources = [*sorted((root / "examples").glob("*.jsonl")), *sorted((root / "config").glob("*.toml"))]
    folder.mkdir(parents=True, exist_ok=True)
    there = [source.name for source in sources if os.path.lexists(folder / source.name)]
    if there:
        raise InvalidInput(f"{folder} has {', '.join(there)} already; name another folder")
    for source in sources:
        shutil.copyfile(source, folder / source.name)
        click.echo(str(folder / source.name))


def _find(house: House, text: str | None) -> PoolRecord:
    return find_pool(house, text)


async def _watch(house: House, pool_id: str, as_json: bool) -> None:
    from rich.console import Console
    from rich.live import Live

    terminal = not as_json and sys.stdout.isatty()
    console = Console(highlight=False, markup=False, emoji=False)
    last = ""
    version = house.ledger.data_version()
    with (
        Live(console=console, auto_refresh=False, transient=True)
        if terminal
        else contextlib.nullcontext() as live
    ):
        while True:
            found = pool_status(house, pool_id)
            if isinstance(live, Live):
                live.update(picture(found, console.width), refresh=True)
            elif as_json:
                echo_json(status_json(found))
            elif (line := progress_line(found)) != last:
                click.echo(many_lines(line))
                last = line
            if not found.alive:
                break
            version = await house.ledger.changed(version, 1.0)
    if not as_json:
        for line in status_lines(found):
            click.echo(many_lines(line))
