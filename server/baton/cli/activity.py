"""`baton activity`: what is going on now, in all sessions."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

import click

from baton.cli.shown import echo_json, one_line
from baton.engine.activity import RunNow, wire
from baton.engine.activity import activity as read_activity
from baton.engine.tell import tell
from baton.ledger.database import Database
from baton.ledger.overview import Overview
from baton.ledger.state import StateFolder

TICK_SECONDS = 1.0
"""Elapsed times move on even when nothing happens."""

REDRAW_SECONDS = 0.2
"""At least so long between two pictures, however much happens."""

EVENTS_AT_ONCE = 500

SLACK_SECONDS = 60.0
"""A run's end is dated before it is committed: those that ended so long before are asked again."""

NOTHING = "nothing has been delegated yet"


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--watch", is_flag=True, help="Follow it until Ctrl+C; with RUN, until that run is at rest.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; with --watch one a line.")
def activity(run_id: str | None, watch: bool, as_json: bool) -> None:
    """What is going on now: the runs of all sessions at work, or one run, with their tasks.

    When none is at work the last ones are shown. --watch waits when there is nothing yet. On a terminal it
    is a picture that fits it; in a pipe it is plain lines, with --watch one for each event. It only reads: a
    run whose process died is shown as such and not taken up.
    """
    state = StateFolder.find()
    with Database(state) as db:
        look = _Look(Overview(db), state, run_id)
        if as_json:
            _json(db, look, watch=watch)
        elif sys.stdout.isatty():
            _picture(db, look, watch=watch)
        else:
            _plain(db, look, watch=watch)


class _Look:
    """What the command was asked to show."""

    def __init__(self, overview: Overview, state: StateFolder, run_id: str | None) -> None:
        self.overview, self.state, self.run_id = overview, state, run_id

    def __call__(self, now: float) -> list[RunNow]:
        return read_activity(self.overview, self.state, now, self.run_id)

    def is_over(self, runs: Sequence[RunNow]) -> bool:
        """Whether there is nothing to wait for: the one run asked for is at rest."""
        return self.run_id is not None and all(run.at_rest for run in runs)


def _json(db: Database, look: _Look, *, watch: bool) -> None:
    def show(now: float) -> bool:
        runs = look(now)
        echo_json({"at": round(now, 3), "runs": [wire(run) for run in runs]})
        return look.is_over(runs)

    if not watch:
        show(time.time())
        return
    with _ended_by_interrupt():
        _follow(db, show, tick=None)


def _picture(db: Database, look: _Look, *, watch: bool) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    from baton.cli.activity_lines import activity_lines

    console = Console(highlight=False, markup=False, emoji=False)

    def lines(now: float, height: int | None) -> tuple[list[Text], Sequence[RunNow]]:
        runs = look(now)
        shown = activity_lines(runs, now, width=console.width, height=height)
        return shown or [Text(NOTHING)], runs

    def print_all() -> None:
        for line in lines(time.time(), None)[0]:
            console.print(line, crop=True)

    if not watch:
        print_all()
        return

    def title(runs: Sequence[RunNow]) -> Text:
        at_work = sum(not run.at_rest for run in runs)
        told = f"{at_work} at work" if at_work else "waiting: nothing is at work"
        made = Text(f"baton activity  {time.strftime('%H:%M:%S')}  {told}  Ctrl+C ends", style="reverse")
        made.truncate(console.width, overflow="ellipsis", pad=True)
        made.no_wrap = True
        return made

    with _ended_by_interrupt(), Live(console=console, screen=True, auto_refresh=False) as live:

        def draw(now: float) -> bool:
            shown, runs = lines(now, console.height - 1)
            live.update(Group(title(runs), *shown), refresh=True)
            return look.is_over(runs)

        _follow(db, draw, tick=TICK_SECONDS)
    print_all()


def _plain(db: Database, look: _Look, *, watch: bool) -> None:
    from baton.cli.activity_lines import activity_lines

    began = time.time()
    runs = look(began)
    for line in activity_lines(runs, began, width=None):
        click.echo(line.plain)
    if not runs:
        click.echo(f"{NOTHING}; waiting" if watch else NOTHING)
    if not watch or look.is_over(runs):
        return
    sys.stdout.flush()
    news = _News(look.overview, began, {run.line.run_id: run.event.seq for run in runs if run.event})

    def tell_news(now: float) -> bool:
        over = look.run_id is not None and look.is_over(look(now))
        for line in news.lines(now, look.run_id):
            click.echo(line)
        sys.stdout.flush()
        return over

    with _ended_by_interrupt():
        _follow(db, tell_news, tick=None)


class _News:
    """The events that have not been told yet."""

    def __init__(self, overview: Overview, began: float, told: dict[str, int]) -> None:
        self.overview, self.began = overview, began
        self.told = told
        """The number of the last event told of each run."""
        self.looked = began

    def lines(self, now: float, run_id: str | None) -> Iterator[str]:
        """Of one run, or of all that were at work at any time since the last call."""
        since, self.looked = self.looked - SLACK_SECONDS, now
        for one in [run_id] if run_id else self.overview.unfinished_since(since):
            yield from self._lines(one)

    def _lines(self, run_id: str) -> Iterator[str]:
        if run_id not in self.told:
            self.told[run_id] = self.overview.last_seq_before(run_id, self.began)
        while events := self.overview.events(run_id, self.told[run_id], EVENTS_AT_ONCE):
            for event in events:
                at = time.strftime("%H:%M:%S", time.localtime(event.at))
                task = f" {one_line(event.task_id)}" if event.task_id else ""
                yield f"{at} {run_id}{task} {one_line(tell(event.kind, event.data))}"
            self.told[run_id] = events[-1].seq


def _follow(db: Database, show: Callable[[float], bool], *, tick: float | None) -> None:
    """Show now and after every change, until `show` says that it is over.

    With `tick` also after so many seconds without a change.
    """
    version = db.data_version()
    while not show(time.time()):
        shown_at = time.monotonic()
        known = version
        while (version := db.wait_for_change(known, tick or 60.0)) == known and tick is None:
            pass
        time.sleep(max(0.0, REDRAW_SECONDS - (time.monotonic() - shown_at)))
        version = db.data_version()


@contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """Ctrl+C is how a person ends watching, and no failure. A termination leaves the terminal in order."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        with suppress(KeyboardInterrupt):
            yield
    except BrokenPipeError:
        # The reader has gone; nothing more may be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        signal.signal(signal.SIGTERM, before)
