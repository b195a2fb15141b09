"""Listeners of ours outside every sandbox: whatever reaches one of them has got out."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

WELCOME = "sesame-welcome-of-a-listener"
"""What every stream listener says first; a worker that prints it has reached one."""


class Ears:
    """Listens on TCP (all addresses, IPv4 and IPv6), UDP and two kinds of Unix sockets while it is open."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / "ear.sock"
        self.abstract = f"baton-escape-{name}"
        self._heard = bytearray()
        self._lock = threading.Lock()
        self._select = selectors.DefaultSelector()
        self._open = contextlib.ExitStack()
        self.tcp = self._listen(socket.AF_INET, "0.0.0.0")
        self.tcp6 = self._listen(socket.AF_INET6, "::")
        self.udp = self._datagrams()
        self._unix(str(self.path))
        self._unix(f"\0{self.abstract}")
        self._woken, self._wake = socket.socketpair()
        self._select.register(self._woken, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def heard(self, token: str) -> bool:
        """Whether the token has arrived anywhere."""
        with self._lock:
            return token.encode() in self._heard

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wake.send(b"x")
        self._thread.join(10)
        self._open.close()
        self._select.close()
        self._woken.close()
        self._wake.close()

    def _listen(self, family: socket.AddressFamily, address: str) -> int:
        made = socket.socket(family, socket.SOCK_STREAM)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((address, 0))
        return self._keep(made)

    def _unix(self, address: str) -> None:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.bind(address)
        self._keep(made)

    def _keep(self, made: socket.socket) -> int:
        made.listen(64)
        self._open.enter_context(made)
        self._select.register(made, selectors.EVENT_READ, "listener")
        name = made.getsockname()
        return int(name[1]) if isinstance(name, tuple) else 0

    def _datagrams(self) -> int:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("0.0.0.0", 0))
        self._open.enter_context(made)
        self._select.register(made, selectors.EVENT_READ, "stream")
        return int(made.getsockname()[1])

    def _serve(self) -> None:
        while True:
            for key, _ in self._select.select():
                ready = key.fileobj
                assert isinstance(ready, socket.socket)
                if key.data is None:
                    return
                if key.data == "listener":
                    self._accept(ready)
                else:
                    self._receive(ready)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            arrived, _ = listener.accept()
            self._open.enter_context(arrived)
            arrived.sendall(WELCOME.encode())
            self._select.register(arrived, selectors.EVENT_READ, "stream")

    def _receive(self, stream: socket.socket) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = stream.recv(65536)
        if data:
            with self._lock:
                self._heard += data
        elif stream.type == socket.SOCK_STREAM:
            self._select.unregister(stream)
