"""`baton dashboard`: the record in a browser on this machine."""

from __future__ import annotations

import sys

import click

from baton.engine.house import House


@click.command()
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="A port of its own; default is a free one."
)
@click.option("--no-open", is_flag=True, help="Only print the link.")
@click.option("--edit", is_flag=True, help="With a page that changes agents in your own policy file.")
def dashboard(port: int, no_open: bool, edit: bool) -> None:
    """Runs, pools, consultations, reviews and workflows as pages in a browser, live, for this user alone.

    It listens on 127.0.0.1. The printed link opens it once and becomes a cookie; the next link is printed
    when it has been used. The pages only show: nothing can be changed or started there. With `--edit` there
    is one page more: the agents that may be asked, each with a form that writes what you change into your own
    policy file.
    """
    from baton.report.dashboard.serve import serve

    def say(line: str) -> None:
        click.echo(line)
        sys.stdout.flush()

    with House.open() as house:
        serve(house, port, browse=not no_open, say=say, edit=edit)
