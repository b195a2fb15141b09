"""Baton as a plugin of Codex, by Codex's own commands."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.contract.errors import CodexFailure, WrongState
from baton.install.config_text import read_text
from baton.install.installer import plugin_in, read_config
from baton.install.places import Places

MARKETPLACE = "baton"
PLUGIN = f"baton@{MARKETPLACE}"

SECONDS = 120.0
"""How long one of Codex's commands may take; it copies the bundle."""


@dataclass(frozen=True)
class CodexCommands:
    """Runs Codex's commands for one home."""

    binary: Path
    places: Places
    env: Mapping[str, str]

    def add(self) -> str:
        """Add the installed copy as a marketplace, and the plugin from it; or refresh the plugin.

        Returns where Codex put it. Raises `WrongState` when the marketplace of that name is another one, and
        `CodexFailure` with what Codex said.
        """
        source = self.marketplace()
        if source is None:
            self.run("plugin", "marketplace", "add", str(self.places.bundle))
        elif Path(source) != self.places.bundle and not _same(Path(source), self.places.bundle):
            raise WrongState(
                f"Codex has a marketplace {MARKETPLACE!r} from {source} already; remove it first:"
                f" codex plugin marketplace remove {MARKETPLACE}"
            )
        added = json.loads(self.run("plugin", "add", PLUGIN, "--json"))
        return str(added.get("installedPath"))

    def remove(self) -> None:
        """Remove the plugin and our marketplace, as far as they are there. Raises `CodexFailure`."""
        if plugin_in(self._config()) == PLUGIN:
            self.run("plugin", "remove", PLUGIN)
        if self.is_ours():
            self.run("plugin", "marketplace", "remove", MARKETPLACE)

    def is_ours(self) -> bool:
        """Whether Codex has our marketplace, made from the installed copy; asks no program."""
        source = self.marketplace()
        return source is not None and _same(Path(source), self.places.bundle)

    def marketplace(self) -> str | None:
        """The folder of the marketplace of our name, None when there is none."""
        table = self._config().get("marketplaces")
        entry = table.get(MARKETPLACE) if isinstance(table, dict) else None
        return str(entry.get("source")) if isinstance(entry, dict) else None

    def run(self, *arguments: str) -> str:
        """One command to its end; its output. Raises `CodexFailure`."""
        shown = " ".join(["codex", *arguments])
        if not self.places.home.is_dir():
            raise CodexFailure(f"the Codex home {self.places.home} does not exist")
        try:
            done = subprocess.run(
                [self.binary, *arguments],
                cwd=self.places.home,
                env={**self.env, "CODEX_HOME": str(self.places.home)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CodexFailure(f"`{shown}` did not end within {SECONDS:.0f} s") from None
        except OSError as error:
            raise CodexFailure(f"`{shown}` failed: {self.binary}: {error.strerror or error}") from None
        if done.returncode != 0:
            raise CodexFailure(f"`{shown}` failed: {reason(done.stderr)}")
        return done.stdout.decode("utf-8", "replace")

    def _config(self) -> dict[str, Any]:
        return read_text(read_config(self.places.config) or b"", self.places.config).data


def reason(errors: bytes) -> str:
    """What a command of Codex's says on its error stream, as one line; a backtrace may follow it."""
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("Error")]
    return (named or lines[-1:] or ["no reason given"])[0].removeprefix("Error: ")


def cached_copies(places: Places) -> list[Path]:
    """The copies of the plugin in Codex's cache, whatever marketplace they came from; sorted."""
    return sorted((places.home / "plugins" / "cache").glob("*/baton/*"))


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
