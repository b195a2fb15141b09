"""A real terminal of a chosen size, by tmux: what a program draws on it, as a person would see it."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import pytest

DEADLINE = 60.0


class Terminal:
    """One program in one terminal. A context manager; what still runs at its end is ended with it."""

    def __init__(
        self, folder: Path, argv: Sequence[str], env: Mapping[str, str], *, columns: int, rows: int
    ) -> None:
        self.folder = folder
        self.argv = list(argv)
        self.env = {**env, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        for name in ("TMUX", "TMUX_PANE", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            self.env.pop(name, None)
        self.columns, self.rows = columns, rows
        self._socket = folder / "tmux.sock"
        self._drawn = folder / "drawn"
        self._reader = -1
        self.drawn = bytearray()
        """All that was read of what the program wrote."""

    def __enter__(self) -> Self:
        if shutil.which("tmux") is None:
            pytest.skip("NO TERMINAL: tmux is not on PATH (Debian: apt-get install tmux)")
        os.mkfifo(self._drawn)
        self._reader = os.open(self._drawn, os.O_RDONLY | os.O_NONBLOCK)
        size = ["-x", str(self.columns), "-y", str(self.rows)]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "t", *size, "sh")
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("resize-window", "-t", "t", *size)
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.tmux("pipe-pane", "-t", "t", f"exec cat > {self._drawn}")
        # The program replaces the shell: the pane shows nothing but what it draws.
        self.tmux("respawn-pane", "-k", "-t", "t", *self.argv)
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(self._command("kill-server"), env=self.env, check=False, capture_output=True)
        os.close(self._reader)

    def screen(self) -> list[str]:
        """The rows as they are now, without trailing blanks."""
        return [row.rstrip() for row in self.tmux("capture-pane", "-p", "-t", "t").split("\n")[: self.rows]]

    def until(self, seen: Callable[[str], bool]) -> list[str]:
        """The rows once they are as wanted; looks again whenever something was drawn."""
        until = time.monotonic() + DEADLINE
        while not seen("\n".join(rows := self.screen())):
            left = until - time.monotonic()
            assert left > 0, "never seen; the screen is:\n" + "\n".join(rows)
            # A second at most: the end of a program draws nothing.
            if select.select([self._reader], [], [], min(left, 1.0))[0]:
                self.drawn += os.read(self._reader, 1 << 20)
        return rows

    def keys(self, *names: str) -> None:
        """Press keys, by the names that tmux has for them."""
        self.tmux("send-keys", "-t", "t", *names)

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.tmux("resize-window", "-t", "t", "-x", str(columns), "-y", str(rows))

    def status(self) -> int | None:
        """The exit status of the program; None while it runs, or is not yet known to have ended how."""
        form = "#{pane_dead} #{pid} #{pane_dead_status}"
        dead, server, *told = self.tmux("display-message", "-p", "-t", "t", form).split()
        if dead == "1" and not told:
            # tmux sometimes misses that its child has ended, and learns of it by the next signal.
            os.kill(int(server), signal.SIGCHLD)
        return int(told[0]) if told else None

    def cursor_is_shown(self) -> bool:
        """Whether the program, once it has ended, left the cursor visible."""
        while select.select([self._reader], [], [], 0)[0] and (piece := os.read(self._reader, 1 << 20)):
            self.drawn += piece
        return self.drawn.rfind(b"\x1b[?25h") >= self.drawn.rfind(b"\x1b[?25l")

    def is_alternate(self) -> bool:
        return self.tmux("display-message", "-p", "-t", "t", "#{alternate_on}").strip() == "1"

    def tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            self._command(*arguments), env=self.env, check=True, capture_output=True, text=True
        )
        return done.stdout

    def _command(self, *arguments: str) -> list[str]:
        return ["tmux", "-S", str(self._socket), *arguments]
