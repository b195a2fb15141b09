"""What is installed where, for a glance: reads files only, starts nothing."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.contract.catalogue import ModelEntry
from baton.install.config_edit import server_in
from baton.install.config_text import read_text
from baton.install.disk import There, digest, look
from baton.install.installer import plugin_in, project_agents, projects_in, read_config
from baton.install.journal import interrupted
from baton.install.owned import OwnedFile, read_owned
from baton.install.places import Places
from baton.install.plugin import cached_copies


@dataclass(frozen=True)
class Agent:
    """One preset, of Baton's or not."""

    name: str
    file: Path
    model: str | None
    effort: str | None
    state: str
    """`as shipped`, `edited`, `stale` (would be made differently now), `yours`, or why Codex ignores it."""

    def wire(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "name": self.name,
            "file": str(self.file),
            "model": self.model,
            "effort": self.effort,
            "state": self.state,
        }


def overview(places: Places) -> dict[str, Any]:
    """What of Baton is in a home. Raises `InvalidInput` for files that cannot be read."""
    owned = read_owned(places.owned)
    config = read_text(read_config(places.config) or b"", places.config).data
    plugin = plugin_in(config)
    server = "plugin" if plugin else "config.toml" if server_in(config) is not None else None
    states = [look(places.path(file.path)).sha256 == file.installed for file in owned.files] if owned else []
    return {
        "home": str(places.home),
        "version": owned.version if owned else None,
        "files": len(states),
        "changedFiles": states.count(False),
        "server": server,
        "plugin": plugin,
        "pluginCopies": [str(copy) for copy in cached_copies(places)],
        "projects": [str(project) for project in projects_in(places, owned)],
        "command": str(places.command) if places.command.exists() else None,
        "interrupted": interrupted(places),
    }


def agents_in(
    places: Places,
    project: Path | None,
    presets: Mapping[str, str],
    models: Sequence[ModelEntry] | None,
) -> list[Agent]:
    """Every agent of the home, and of a project, by folder and name; without `models` none is looked up."""
    owned = read_owned(places.owned)
    records = {places.path(file.path): file for file in owned.files} if owned else {}
    folders = [places.home / "agents", *([project_agents(project)] if project is not None else [])]
    slugs = {model.slug for model in models} if models is not None else None
    return [
        _agent(file, records.get(file), presets.get(f"agents/{file.name}"), slugs)
        for folder in folders
        for file in sorted(folder.glob("*.toml"))
    ]


def fault_of(file: Path, slugs: set[str] | None) -> str | None:
    """Why Codex cannot use an agent, as far as the file alone says; None when it can."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return f"Codex ignores it: it cannot be read: {error}"
    missing = [key for key in ("name", "description", "developer_instructions") if not data.get(key)]
    if missing:
        return f"Codex ignores it: {', '.join(missing)} is missing"
    model = data.get("model")
    if slugs is not None and model is not None and model not in slugs:
        return f"this Codex has no model {model!r}"
    return None


def state_of(file: Path, record: OwnedFile | None, ours: str | None) -> str:
    """How an agent stands to what Baton installed and would install now."""
    found = look(file)
    if record is None:
        return "yours"
    if found.there is not There.FILE or found.sha256 not in (record.installed, record.shipped):
        return "edited"
    return "as shipped" if ours is not None and found.sha256 == digest(ours.encode()) else "stale"


def _agent(file: Path, record: OwnedFile | None, ours: str | None, slugs: set[str] | None) -> Agent:
    fault = fault_of(file, slugs)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        data = {}
    return Agent(
        name=str(data.get("name") or file.stem),
        file=file,
        model=data.get("model"),
        effort=data.get("model_reasoning_effort"),
        state=fault or state_of(file, record, ours),
    )
