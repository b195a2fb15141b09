"""What a person sees while a pool runs: a table on a terminal, plain lines elsewhere.

Everything is shown by a thread of its own, so that a terminal that is held up never holds up the pool.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from baton.cli.shown import many_lines
from baton.contract.errors import BatonError
from baton.ledger.pool_records import JobState
from baton.pool.events import PoolEvent
from baton.pool.present import event_line, measures, progress_line
from baton.pool.status import PoolStatus

STATUS_SECONDS = 1.0
"""At least so long between two looks at the whole pool."""

PROGRESS_SECONDS = 10.0
"""At least so long between two plain lines on the whole pool."""

CLOSE_SECONDS = 5.0
"""How long the end waits for a terminal that is held up."""

BESIDE_BAR = 18
"""Columns of the longest state and of the gaps."""

_STYLES = {
    JobState.SUCCEEDED: "green",
    JobState.FAILED: "red",
    JobState.INTERRUPTED: "yellow",
    JobState.SKIPPED: "yellow",
    JobState.RUNNING: "cyan",
    JobState.QUEUED: "",
}


class Display:
    """Shows nothing; what the others have in common."""

    def __init__(self, look: Callable[[], PoolStatus]) -> None:
        self._look = look
        self._looked_at = 0.0
        self._items: queue.SimpleQueue[tuple[str | None, PoolStatus | None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="pool-display", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._items.put(None)
        self._thread.join(CLOSE_SECONDS)

    def tell(self, event: PoolEvent) -> None:
        """Take an event; neither waits for the terminal nor raises."""
        now = time.monotonic()
        due = now - self._looked_at >= STATUS_SECONDS or event.kind in ("pool.began", "pool.ended")
        if due:
            self._looked_at = now
        status: PoolStatus | None = None
        if due:
            # A look that fails costs a picture, never the pool.
            with contextlib.suppress(BatonError):
                status = self._look()
        self._items.put((event_line(event), status))

    def abandon(self) -> None:
        """The process ends at once: leave the terminal as it was, without waiting for it."""

    def show(self, line: str | None, status: PoolStatus | None) -> None:
        """Called in the display's own thread."""

    def _work(self) -> None:
        # The reader of our output may go; the pool goes on.
        with contextlib.suppress(BrokenPipeError, OSError):
            self.work()

    def work(self) -> None:
        """The life of the thread."""
        while (item := self._items.get()) is not None:
            self.show(*item)


class Quiet(Display):
    """For `--json`: only the end is told."""

    def tell(self, event: PoolEvent) -> None:
        return


class Lines(Display):
    """A line for each thing that happened, and now and then one on the whole."""

    def __init__(self, look: Callable[[], PoolStatus]) -> None:
        super().__init__(look)
        self._told_at = time.monotonic()

    def show(self, line: str | None, status: PoolStatus | None) -> None:
        if line is not None:
            click.echo(many_lines(line))
        if status is not None and time.monotonic() - self._told_at >= PROGRESS_SECONDS:
            self._told_at = time.monotonic()
            click.echo(many_lines(progress_line(status)))


class LiveTable(Display):
    """Counts, speed and limits in place; what went wrong scrolls past above them."""

    def work(self) -> None:
        console = Console(highlight=False, markup=False, emoji=False)
        with Live(console=console, auto_refresh=False, transient=True) as live:
            while (item := self._items.get()) is not None:
                line, status = item
                if line is not None and not line.startswith("ok "):
                    live.console.print(Text(many_lines(line)), soft_wrap=True)
                if status is not None:
                    live.update(picture(status, console.width), refresh=True)

    def abandon(self) -> None:
        """Show the cursor again."""
        write_now(sys.stdout, "\x1b[?25h\n")


def write_now(stream: TextIO, text: str) -> None:
    """Write where that is possible without waiting; a terminal that is held up or gone gets nothing."""
    with contextlib.suppress(OSError, ValueError):
        handle = stream.fileno()
        if select.select([], [handle], [], 0)[1]:
            os.write(handle, text.encode())


def picture(status: PoolStatus, columns: int) -> Table:
    """The state of a pool as a small table, for a terminal of so many columns."""
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    done, of = status.finished, status.total
    count = f"{done}/{of}"
    bar = _bar(done, of, columns - len(count) - BESIDE_BAR)
    table.add_row(Text(status.record.state.value, style="bold"), Text(f"{bar} {count}".strip()))
    for state, style in _STYLES.items():
        if status.counts.get(state):
            table.add_row(Text(str(status.counts[state]), style=style), Text(state.value, style=style))
    for measure in measures(status):
        table.add_row(Text(""), Text(many_lines(measure), style="dim"))
    return table


def _bar(done: int, of: int, columns: int) -> str:
    width = min(30, columns)
    if width < 5:
        return ""
    filled = width * done // of if of else 0
    return "█" * filled + "░" * (width - filled)
