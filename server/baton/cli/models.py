"""`baton models`: what the installed Codex offers, and which of it each tier uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import click
from rich.console import Console
from rich.table import Table

from baton.cli.shown import echo_json, many_lines
from baton.contract.catalogue import ModelEntry
from baton.engine.house import House
from baton.engine.models import Models, installed_models, usable, worker_efforts


@click.command()
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    help="A project's folder, whose .codex/baton.toml narrows the policy. Default: the current folder.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def models(ctx: click.Context, project: Path | None, as_json: bool) -> None:
    """Models of the installed Codex, the tiers that resolve to them, and the efforts that workers may have.

    Exit status 1 when a tier has no model here.
    """
    with House.open() as house:
        found = anyio.run(installed_models, house, (project or Path.cwd()).absolute())
    if as_json:
        echo_json(_wire(found))
    else:
        _tell(found)
    ctx.exit(1 if any(tier.model is None for tier in found.tiers) else 0)


def _tell(found: Models) -> None:
    click.echo(f"Codex {found.binary.version} ({found.binary.path})")
    table = Table(box=None, pad_edge=False, header_style="")
    for heading in ("model", "tier", "efforts for workers", "default", "context", "remarks"):
        table.add_column(heading, no_wrap=heading != "remarks")
    for entry in found.entries:
        efforts = " ".join(worker_efforts(entry)) or "-"
        window = "-" if entry.context_window is None else str(entry.context_window)
        tiers = " ".join(_tiers_of(found, entry)) or "-"
        table.add_row(entry.slug, tiers, efforts, entry.default_effort or "-", window, _remarks(entry))
    # Never cut a name: where the terminal is narrow, lines wrap by themselves.
    console = Console(width=200, highlight=False, markup=False, soft_wrap=True)
    with console.capture() as shown:
        console.print(table)
    for line in shown.get().splitlines():
        click.echo(many_lines(line.rstrip()))
    for tier in found.tiers:
        if tier.note:
            click.echo(f"{tier.name}: {tier.note}" if tier.model else tier.note)


def _tiers_of(found: Models, entry: ModelEntry) -> list[str]:
    return [tier.name for tier in found.tiers if tier.model == entry.slug]


def _remarks(entry: ModelEntry) -> str:
    remarks = [] if entry.listed else ["not listed"]
    if not usable(entry):
        remarks.append("not for workers: it only has efforts that delegate")
    elif not entry.efforts:
        remarks.append("no efforts")
    if entry.upgrade:
        remarks.append(f"on its way out, {entry.upgrade} replaces it")
    return "; ".join(remarks)


def _wire(found: Models) -> dict[str, Any]:
    return {
        "codex": {"version": str(found.binary.version), "path": str(found.binary.path)},
        "models": [
            {
                **entry.wire(compact=False),
                "tiers": _tiers_of(found, entry),
                "workers": usable(entry),
                "workerEfforts": list(worker_efforts(entry)),
            }
            for entry in found.entries
        ],
        "tiers": [
            {"name": tier.name, "model": tier.model, "effort": tier.effort, "note": tier.note}
            for tier in found.tiers
        ],
    }
