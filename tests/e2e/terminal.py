"""The interactive Codex in a terminal of its own, driven by keys and read from its screen."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from baton.process import tree

SECONDS = 120.0
"""How long anything may take to come to the screen before a test gives it up."""

LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Terminal:
    """A tmux server with one window."""

    socket: Path
    env: Mapping[str, str]

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def keys(self, *names: str) -> None:
        """Press keys, by tmux's names for them."""
        self._tmux("send-keys", *names)

    def type(self, text: str) -> None:
        """Type a line and send it."""
        self._tmux("send-keys", "-l", text)
        self.until(lambda screen: text in screen)
        self.keys("Enter")

    def close(self) -> None:
        """Take the terminal away, as closing its window does."""
        self._tmux("kill-server")

    def until(self, seen: Callable[[str], bool]) -> str:
        """The first screen that has been waited for."""
        until = time.monotonic() + SECONDS
        while not seen(screen := self.screen()):
            assert time.monotonic() < until, screen
            threading.Event().wait(LOOK_SECONDS)
        return screen

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self.socket), "-f", "/dev/null", *arguments]
        return subprocess.run(
            command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        ).stdout


@contextmanager
def interactive(
    binary: Path, socket: Path, project: Path, env: Mapping[str, str], *arguments: str
) -> Iterator[Terminal]:
    """The interactive program in a terminal, which goes away at the end with all that it left behind."""
    if shutil.which("tmux") is None:
        pytest.skip("NO TERMINAL: tmux is not on PATH (Debian: apt-get install tmux)")
    window = Terminal(socket, {**env, "TERM": "xterm-256color"})
    size = ("-d", "-x", "150", "-y", "50", "-c", str(project))
    window._tmux("new-session", *size, str(binary), *arguments)
    try:
        yield window
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], capture_output=True, check=False)
        # The interactive program leaves a daemon behind, which keeps its servers.
        tree.end_processes(tree.processes_with_marker("CODEX_HOME", env["CODEX_HOME"]))
