"""`baton gc`: give back the space of what has had its time."""

from __future__ import annotations

from typing import Any

import click

from baton.cli.shown import echo_json, many_lines
from baton.consult.retention import forget_old
from baton.contract.wording import many
from baton.engine.collect import Collected, collect
from baton.engine.house import House
from baton.engine.retention import Decided
from baton.pool.collect import collect_pools
from baton.workflow.ending import forget_old as forget_old_workflows


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option(
    "--days",
    type=click.FloatRange(min=0),
    help="Remove runs and pools at rest for this long instead of the policy's retention.days.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def gc(dry_run: bool, days: float | None, as_json: bool) -> None:
    """Remove runs and pools that are older than the retention time, and what belongs to none.

    Only what is recorded, captured, at rest and in nobody's use is removed; what somebody asked to keep
    (`control_run keep`) stays. Beyond retention.max_bytes the oldest runs that wait for no decision go as
    well. Consultations and workflows go consult.keep_days after they ended. Your files are not touched; in
    your repository only Baton's own pins and backups are removed.
    """
    with House.open() as house:
        faults: list[str] = []
        # First, so that what they kept is seen to be nobody's.
        pools = collect_pools(house, days=days, dry_run=dry_run, faults=faults)
        workflows = forget_old_workflows(house, dry_run=dry_run)
        forgotten = forget_old(house, dry_run=dry_run)
        done = collect(house, days=days, dry_run=dry_run)
    done.faults += faults + workflows.faults + forgotten.faults
    done.freed_bytes += forgotten.freed_bytes
    if forgotten.consultations:
        done.swept["consultations"] = len(forgotten.consultations)
    if workflows.workflows:
        done.swept["workflows"] = len(workflows.workflows)
    if pools:
        done.swept["pools"] = len(pools)
    if as_json:
        echo_json(_wire(done))
        return
    _tell(done)


def _tell(done: Collected) -> None:
    verb = "would remove" if done.dry_run else "removed"
    for decided in done.removed:
        click.echo(many_lines(f"{verb} {decided.run.run_id}  {decided.run.state:<11}  {decided.why}"))
    for kind, count in sorted(done.swept.items()):
        click.echo(f"{verb} {count} {kind}")
    for decided in done.kept:
        click.echo(many_lines(f"kept {decided.run.run_id}  {decided.run.state:<11}  {decided.why}"))
    for fault in done.faults:
        click.echo(many_lines(f"not removed: {fault}"))
    click.echo(
        f"{many(len(done.removed), 'run')} {'would go' if done.dry_run else 'removed'},"
        f" {len(done.kept)} kept,"
        f" {done.freed_bytes / 2**20:.1f} MiB of results"
    )


def _wire(done: Collected) -> dict[str, Any]:
    return {
        "dryRun": done.dry_run,
        "removed": [_entry(decided) for decided in done.removed],
        "kept": [_entry(decided) for decided in done.kept],
        "swept": done.swept,
        "freedBytes": done.freed_bytes,
        "faults": done.faults,
    }


def _entry(decided: Decided) -> dict[str, Any]:
    return {
        "runId": decided.run.run_id,
        "state": decided.run.state.value,
        "workspace": decided.run.workspace,
        "bytes": decided.size,
        "why": decided.why,
    }
