"""Tries from outside, over and over, to reach a port that a worker was told to listen on."""

from __future__ import annotations

import contextlib
import socket
import threading

from chaos._lab import Lab

INTERVAL = 0.05


class Knocker:
    """Knocks from its making to `close`; `answered` says whether anybody opened with the right word."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.token = lab.secret(f"door-{name}")
        self.answered = False
        family = socket.AF_INET6 if name.endswith("6") else socket.AF_INET
        self._host = "::1" if name.endswith("6") else "127.0.0.1"
        with socket.socket(family) as free:
            free.bind((self._host, 0))
            self.port = int(free.getsockname()[1])
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._knock, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join(5)

    def _knock(self) -> None:
        while not self.answered and not self._over.wait(INTERVAL):
            with contextlib.suppress(OSError), socket.create_connection((self._host, self.port), 1) as door:
                self.answered = self.token.encode() in door.recv(200)
