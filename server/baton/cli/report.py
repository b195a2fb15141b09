"""`baton report`: one run, and why its results can be trusted."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import click

from baton.cli.shown import one_line
from baton.contract.errors import InvalidInput
from baton.engine.house import House


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option(
    "--html", type=click.Path(path_type=Path), help="Write one self-contained page; - is standard output."
)
@click.option(
    "--task", "task_ids", multiple=True, metavar="ID", help="The evidence of this task only; repeatable."
)
def report(run_id: str, html: Path | None, task_ids: tuple[str, ...]) -> None:
    """One run: where its time went, what each worker claims beside what Baton observed, and what it cost.

    With --html it is a page to keep or to send: styles and pictures inside, nothing fetched, no script. It
    holds what the workers were told and said, their diffs and the output of checks.
    """
    from baton.report.page import read_report, render_report

    if html is not None and str(html) != "-":
        _refuse_foreign(html)
    with House.open() as house:
        found = read_report(house, run_id, time.time(), task_ids)
    if html is None:
        from rich.console import Console

        from baton.report.terminal import print_report

        print_report(found, Console(highlight=False, markup=False, emoji=False))
        return
    page = render_report(found)
    if str(html) == "-":
        # What is no Unicode has been made visible; this is for what no template shows.
        click.echo(page.encode("utf-8", "backslashreplace"))
        return
    _write(html, page)
    click.echo(f"written: {one_line(str(html))}")


def _refuse_foreign(path: Path) -> None:
    """An existing file is replaced only when it is a report."""
    from baton.report.page import MARK

    if path.is_dir():
        raise InvalidInput(f"--html {path} is a folder; name a file in it")
    if path.exists():
        with path.open("rb") as file:
            if MARK.encode() not in file.read(200):
                raise InvalidInput(f"--html {path} exists and is no report of Baton's; name another file")
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"--html {path}: there is no folder {path.absolute().parent}; make it first")


def _write(path: Path, page: str) -> None:
    """In one step, readable by this user alone: it quotes what the workspace holds."""
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=".baton-report-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(page)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
