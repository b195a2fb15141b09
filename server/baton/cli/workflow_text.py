"""What `baton workflow` prints: what is due, where a workflow is, and its steps as a table."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.cells import cell_len

from baton.cli.shown import echo_json, many_lines, one_line

NARROWEST = 20
"""Columns that the last cell of a table has, however narrow the terminal is."""


def due_text(told: dict[str, Any]) -> str:
    """What happened, and what the step that is due would send to whom."""
    due = dict(told["due"])
    lines = [*told.get("did", ()), f"due: {due.pop('step')} by {due.pop('by')}"]
    for name, value in due.items():
        lines.append(
            f"  {name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        )
    return many_lines("\n".join(lines))


def print_workflow(told: dict[str, Any], as_json: bool) -> None:
    """Print an answer of the workflow service."""
    if as_json:
        echo_json(told)
        return
    if "text" in told:
        click.echo(many_lines(str(told["text"])))
        return
    round_ = f"  round {told['round']}" if "round" in told else ""
    click.echo(one_line(f"{told['workflowId']}  {told['state']}{round_}"))
    for line in told.get("did", ()):
        click.echo(one_line(f"  {line}"))
    if isinstance(told.get("steps"), list):
        rows = [(str(one["number"]), one["step"], one["state"], one["by"]) for one in told["steps"]]
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in table(rows, columns):
            click.echo(line)
    for name, who in told.get("bindings", {}).items():
        click.echo(one_line(f"  {name}: {who}"))
    for finding in told.get("findings", ()):
        click.echo(one_line(f"  {finding['id']} {finding['severity']}: {finding['title']}"))
    for name in ("note", "next"):
        if told.get(name):
            click.echo(one_line(f"{name}: {told[name]}"))


def table(rows: Sequence[Sequence[str]], columns: int | None) -> Iterator[str]:
    """Rows as lines: every column as wide as its widest cell; the last one goes on below itself.

    `columns`: of the terminal; None where nothing is broken.
    """
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)][:-1]
    indent = " " * (2 + sum(widths) + 2 * len(widths))
    for *cells, last in shown:
        head = "  ".join(
            cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)
        )
        room = None if columns is None else max(columns - len(indent), NARROWEST)
        lines = [last] if room is None else textwrap.wrap(last, room, break_on_hyphens=False) or [""]
        yield f"  {head}  {lines[0]}".rstrip()
        yield from (indent + line for line in lines[1:])
