"""A place for real worker threads: a work folder, an app-server, profiles that name what may be written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baton.codex.appserver import AppServer
from baton.codex.settings import ThreadSettings
from baton.codex.thread import WorkerThread, start_thread
from baton.simulate.home import write_simulated_home

LUNA = "gpt-5.6-luna"
PLAIN = "gpt-5.5"
"""A model that calls its tools directly, not from JavaScript."""


@dataclass(frozen=True)
class WrittenProfile:
    """A permission profile written out by hand."""

    name: str
    filesystem: Mapping[str, str]
    writable_roots: tuple[str, ...]
    network: Mapping[str, object] = field(default_factory=lambda: {"enabled": False})
    workspace_roots: tuple[str, ...] | None = None

    @property
    def config(self) -> dict[str, Any]:
        table = {"filesystem": dict(self.filesystem), "network": dict(self.network)}
        return {"permissions": {self.name: table}}


def writing(*folders: Path) -> WrittenProfile:
    """Everything readable, these folders writable."""
    paths = tuple(str(folder) for folder in folders)
    entries = {":root": "read", **dict.fromkeys(paths, "write")}
    return WrittenProfile(f"t-{secrets.token_hex(6)}", entries, paths)


class Bench:
    """Folders of one test and what is started in them."""

    def __init__(self, root: Path, binary: Path, port: int) -> None:
        self.binary = binary
        self.root = root
        self.home = write_simulated_home(root / "codex", port)
        self.work = root / "work"
        (self.work / "src").mkdir(parents=True)
        (self.work / "lib").mkdir()
        (root / "scratch").mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(root), "FOREIGN_TOKEN": "secret-value"}

    async def server(self, **options: Any) -> AppServer:
        return await AppServer.start(
            self.binary,
            self.home,
            {**self.environment, **options.pop("environment", {})},
            stderr=self.root / "stderr",
            cwd=self.root,
            **options,
        )

    def settings(self, model: str = LUNA, **changes: Any) -> ThreadSettings:
        values: dict[str, Any] = {
            "cwd": self.work,
            "model": model,
            "effort": "high",
            "profile": writing(self.work / "src"),
            "environment": {"PATH": "/usr/bin:/bin", "HOME": str(self.root / "scratch")},
        }
        return ThreadSettings(**{**values, **changes})

    async def thread(self, server: AppServer, model: str = LUNA, **changes: Any) -> WorkerThread:
        return await start_thread(server, self.settings(model, **changes))


@contextmanager
def closed_port() -> Iterator[int]:
    """A port of this machine where nobody answers."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
