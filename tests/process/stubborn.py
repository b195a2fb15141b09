"""Programs that misbehave in known ways, and a way to wait for what they do."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from baton.process import tree

DEADLINE = 30.0

STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
noted, noting = os.pipe()
def note(kind):
    with open(sys.argv[1], "a") as file:
        file.write(f"{kind} {os.getpid()}\\n")
    os.close(noting)
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            note("daemon")
            while True:
                time.sleep(60)
        os._exit(0)
    os.wait()
daemon()
if os.fork() == 0:
    note("child")
    while True:
        time.sleep(60)
note("main")
os.read(noted, 1)
"""
"""Starts a double-forked daemon and a child, all deaf to SIGTERM and SIGHUP; writes their pids to a file.

It goes on only when all three have written theirs.
"""

STAYS = STUBBORN + "\nwhile True:\n    time.sleep(60)\n"

KINDS = ("main", "child", "daemon")


class Stubborn:
    """The stubborn program and what it has started."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def argv(self, *, stays: bool) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", STAYS if stays else STUBBORN, str(self.notes)]

    def processes(self) -> dict[str, tree.ProcessId]:
        """Those that have reported so far and were alive when looked at."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        pids = {kind: int(pid) for kind, pid in (line.split() for line in lines)}
        started = {kind: tree.start_time(pid) for kind, pid in pids.items()}
        return {
            kind: tree.ProcessId(pids[kind], start) for kind, start in started.items() if start is not None
        }

    def wait_for_all(self) -> dict[str, tree.ProcessId]:
        wait_until(lambda: set(self.processes()) == set(KINDS), "the stubborn program started everything")
        return self.processes()

    def pids(self) -> list[int]:
        return [int(line.split()[1]) for line in self.notes.read_text().splitlines()]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Look again and again, and fail when it has not come true by the deadline."""
    until = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < until, f"did not happen in {DEADLINE:g} s: {what}"
        time.sleep(0.01)


def wait_until_gone(processes: dict[str, tree.ProcessId]) -> None:
    wait_until(
        lambda: not any(tree.is_alive(process) for process in processes.values()),
        f"the end of {', '.join(processes)}",
    )
