"""What this version ships, file by file, for a person's home or a project."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton import __version__
from baton.contract.catalogue import ModelEntry
from baton.contract.errors import Unsupported
from baton.install.disk import digest
from baton.install.owned import Kind
from baton.install.places import Places, shown
from baton.policy.load import load_policy
from baton.policy.render import RENDERED_FOLDERS, render
from baton.runtime.places import bundle_files

PLUGIN_PREFIX = "$baton:"
"""How skills name each other in the plugin; a person's own skills have no prefix."""

SHIM_MARK = "# The baton command, written by `baton install`"

_SHIM = """#!/bin/sh
{mark}: starts what is installed in the Codex home.
home=${{CODEX_HOME:-}}
if [ -z "$home" ] || [ ! -e "$home/baton/bundle/scripts/program.sh" ]; then
    home={home}
fi
if [ ! -e "$home/baton/bundle/scripts/program.sh" ]; then
    echo "baton: nothing is installed in $home; run scripts/install-personal.sh of a checkout" >&2
    exit 1
fi
exec sh "$home/baton/bundle/scripts/program.sh" baton "$@"
"""


@dataclass(frozen=True)
class Shipped:
    """One file as this version ships it."""

    path: Path
    content: bytes
    kind: Kind
    mode: int = 0o644

    @property
    def sha256(self) -> str:
        return digest(self.content)


@dataclass(frozen=True)
class Package:
    """The bundle that is installed from."""

    root: Path

    def files(self) -> dict[str, Path]:
        """Every file of the bundle by its name in it.

        Raises `Unsupported` when what lies at the root is not complete.
        """
        found = {name: self.root / name for name in bundle_files(str(self.root))}
        inside = self.root.parent
        if self.root.name == "bundle" and (inside / "cli").is_dir():
            # A wheel: the program lies around the bundle, not in it.
            for file in sorted(inside.rglob("*")):
                if file.is_file() and file.suffix != ".pyc" and not file.is_relative_to(self.root):
                    found[f"server/baton/{file.relative_to(inside).as_posix()}"] = file
        for name in (".mcp.json", "scripts/serve.sh", "requirements.lock", "server/baton/__init__.py"):
            if name not in found:
                raise Unsupported(f"{self.root} is no complete bundle to install from: {name} is missing")
        return found

    def content(self) -> str:
        """A hash of everything in the bundle."""
        lines = [f"{name} {digest(path.read_bytes())}" for name, path in sorted(self.files().items())]
        return digest("\n".join(lines).encode())

    def version(self) -> str:
        """The version that the plugin's manifest names."""
        try:
            manifest = json.loads((self.root / ".codex-plugin/plugin.json").read_text(encoding="utf-8"))
            return str(manifest["version"])
        except (OSError, ValueError, KeyError):
            return __version__

    def server_entry(self, places: Places) -> dict[str, Any]:
        """The server's entry for config.toml: the plugin's own options, started from the installed copy."""
        file = self.files()[".mcp.json"]
        entry: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["mcpServers"]["baton"]
        bundle = shown(places.bundle)
        return {**entry, "args": [f"{bundle}/{argument}" for argument in entry["args"]], "cwd": bundle}

    def bundle(self, places: Places) -> list[Shipped]:
        """The installed copy."""
        return [
            Shipped(places.bundle / name, path.read_bytes(), Kind.BUNDLE, _mode(name))
            for name, path in sorted(self.files().items())
        ]

    def presets(self, places: Places, catalogue: Sequence[ModelEntry] | None) -> dict[str, str]:
        """Skills and agents as this person's policy and Codex make them, by `skills/…` and `agents/…`.

        Raises `InvalidInput` for a policy that cannot be used.
        """
        policy = load_policy(places.home, None, self.root)
        rendered = render(policy, self.root, catalogue)
        return {
            name: text.replace(PLUGIN_PREFIX, "$")
            for name, text in rendered.items()
            if name.split("/")[0] in RENDERED_FOLDERS
        }

    def command(self, places: Places) -> Shipped:
        """The `baton` command: finds the installed copy by CODEX_HOME, else in this home."""
        text = _SHIM.format(mark=SHIM_MARK, home=_quoted(shown(places.home)))
        return Shipped(places.command, text.encode(), Kind.COMMAND, 0o755)


def agents(presets: Mapping[str, str], folder: Path) -> list[Shipped]:
    """The agents, for the folder of agents of a home or project."""
    return [
        Shipped(folder / name.removeprefix("agents/"), text.encode(), Kind.AGENT)
        for name, text in presets.items()
        if name.startswith("agents/")
    ]


def skills(presets: Mapping[str, str], folder: Path) -> list[Shipped]:
    """The skills, for a home's folder of skills."""
    return [
        Shipped(folder / name.removeprefix("skills/"), text.encode(), Kind.SKILL)
        for name, text in presets.items()
        if name.startswith("skills/")
    ]


def _mode(name: str) -> int:
    return 0o755 if name.endswith(".sh") else 0o644


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
