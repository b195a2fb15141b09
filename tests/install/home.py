"""A throw-away home, packages of any content to install into it, and pictures of what is there."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from baton.install.installer import Installer, Wish, uninstall
from baton.install.journal import Checkpoint
from baton.install.places import Places
from baton.install.report import Report
from baton.install.shipped import Package

Picture = dict[str, tuple[str, int, bytes]]
"""By path: what it is, its mode, its content or where it leads."""

AGENT = 'name = "luna-worker"\ndescription = "d"\ndeveloper_instructions = "{}"\n'
SKILL = "---\nname: orchestrate-work\ndescription: d\n---\n\n{}\n"

PRESETS: Mapping[str, str] = {
    "agents/luna-worker.toml": AGENT.format("one"),
    "skills/orchestrate-work/SKILL.md": SKILL.format("one"),
    "skills/orchestrate-work/references/more.md": "more\n",
}


def make_package(root: Path, version: str, files: Mapping[str, str] | None = None) -> Package:
    """A bundle small enough to install hundreds of times."""
    server = {"command": "sh", "args": ["scripts/serve.sh"], "cwd": ".", "env_vars": ["CODEX_HOME", version]}
    content = {
        ".mcp.json": json.dumps({"mcpServers": {"baton": server}}),
        ".codex-plugin/plugin.json": json.dumps({"name": "baton", "version": version}),
        "scripts/serve.sh": f"#!/bin/sh\n# {version}\n",
        "scripts/program.sh": f"#!/bin/sh\necho {version}\n",
        "requirements.lock": "",
        "server/baton/__init__.py": f'__version__ = "{version}"\n',
        **(files or {}),
    }
    for name, text in content.items():
        path = root / version / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Package(root / version)


@dataclass
class Home:
    """A person's home with Codex in it."""

    user: Path
    packages: Path
    places: Places = field(init=False)

    def __post_init__(self) -> None:
        self.places = Places(self.user / ".codex", self.user / ".local" / "bin")

    def installer(
        self,
        version: str = "1.0.0",
        presets: Mapping[str, str] = PRESETS,
        files: Mapping[str, str] | None = None,
        checkpoint: Checkpoint = lambda _: None,
    ) -> Installer:
        package = make_package(self.packages, version, files)
        return Installer(self.places, package, presets, checkpoint)

    def install(self, version: str = "1.0.0", presets: Mapping[str, str] = PRESETS, **wish: bool) -> Report:
        return self.installer(version, presets).install(Wish(**wish))

    def uninstall(self) -> Report:
        return uninstall(self.places)

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file below the Codex home."""
        path = self.places.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def read(self, name: str) -> str:
        return (self.places.home / name).read_text()

    def picture(self) -> Picture:
        """Everything below the person's home."""
        return picture(self.user)


def picture(root: Path) -> Picture:
    """Everything below a folder, links not followed."""
    seen: Picture = {}
    for folder, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(folder, name)
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            key = str(path.relative_to(root))
            if path.is_symlink():
                seen[key] = ("link", 0, os.fsencode(path.readlink()))
            elif path.is_dir():
                seen[key] = ("folder", mode, b"")
            else:
                seen[key] = ("file", mode, path.read_bytes())
    return seen


def without_own(seen: Picture) -> Picture:
    """A picture without Baton's own corner of the Codex home."""
    return {name: entry for name, entry in seen.items() if not name.startswith(".codex/baton")}
