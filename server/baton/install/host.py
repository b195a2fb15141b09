"""How the program one works in is told of Baton's server: the exact line, or the entry of its file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.contract.errors import Unsupported
from baton.install.places import Places

HOSTS = ("codex", "claude", "opencode")

PASSED = ("BATON_STATE", "BATON_RUNTIME", "BATON_PYTHON", "BATON_CODEX_BIN", "CODEX_BIN", "CODEX_HOME")
"""Variables that a server started by another program must have too, where the person has set them."""


@dataclass(frozen=True)
class Registration:
    """How a host starts the server."""

    host: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    line: str | None
    """What to run in a terminal; None for a host that is told by a file alone."""
    entry: Mapping[str, Any] | None = None
    """What to put into the host's file, where there is no line."""
    file: str | None = None

    def wire(self) -> dict[str, Any]:
        """JSON-ready."""
        data = {
            "host": self.host,
            "command": list(self.command),
            "env": dict(self.env),
            "line": self.line,
            "entry": self.entry,
            "file": self.file,
        }
        return {name: value for name, value in data.items() if value is not None}


def registration(host: str, places: Places, env: Mapping[str, str], bundle: Path) -> Registration:
    """The registration for a host of `HOSTS`.

    The installed copy is started where there is one, so that updates reach it; else `bundle`. Raises
    `Unsupported` when neither has the server.
    """
    root = next((root for root in (places.bundle, bundle) if (root / "scripts" / "serve.sh").is_file()), None)
    if root is None:
        raise Unsupported(f"{bundle} has no server to start; run `baton install` first")
    command = ("sh", str(root.absolute() / "scripts" / "serve.sh"))
    told = {name: env[name] for name in PASSED if env.get(name)}
    own = {"BATON_HOST_RUNTIME": host, **told}
    if host == "opencode":
        entry = {"mcp": {"baton": {"type": "local", "command": list(command), "environment": own}}}
        return Registration(host, command, own, None, entry, "~/.config/opencode/opencode.json")
    options = [part for name, value in own.items() for part in ("--env", f"{name}={value}")]
    words = [host, "mcp", "add", "baton", *options, "--", *command]
    if host == "claude":
        words[3:3] = ["--scope", "user"]
    return Registration(host, command, own, shlex.join(words))


def shown(entry: Mapping[str, Any]) -> str:
    """An entry as it goes into a file of JSON."""
    return json.dumps(entry, indent=2, ensure_ascii=False)
