"""A project with a job file, read as `baton pool run` reads it, with the catalogue of a Codex."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from baton.contract.catalogue import ModelEntry
from baton.pool.jobs import Job
from baton.pool.read import JobsRefused, read_jobs
from baton.pool.settings import PoolSettings
from baton.pool.settle import Flags, settle
from baton.workspace.git import Git

CATALOGUE = (
    *(
        ModelEntry(
            slug=f"gpt-5.6-{family}", efforts=("low", "medium", "high", "xhigh"), default_effort="medium"
        )
        for family in ("luna", "terra", "sol")
    ),
    ModelEntry(slug="gpt-5.5", efforts=("low", "medium")),
)


class Desk:
    """One project folder and one job file in it."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home = home
        self.codex_home = home / ".codex"
        self.project = project
        self.file = project / "jobs.jsonl"

    def write(self, content: bytes | str) -> Path:
        self.file.write_bytes(content.encode() if isinstance(content, str) else content)
        return self.file

    def write_rows(self, *rows: dict[str, Any]) -> Path:
        return self.write("".join(json.dumps(row) + "\n" for row in rows))

    def settings(self, flags: Flags | None = None, folder: Path | None = None) -> PoolSettings:
        return settle(
            self.file, flags or Flags(), self.codex_home, folder or self.project, self.home
        ).settings

    def jobs(self, flags: Flags | None = None, **changes: Any) -> list[Job]:
        settled = settle(self.file, flags or Flags(), self.codex_home, self.project, self.home)
        return read_jobs(
            self.file, replace(settled.settings, **changes), settled.policy, CATALOGUE, Git.find()
        )

    def faults(self, flags: Flags | None = None) -> list[str]:
        """What is wrong with the file: line and text of every fault."""
        with pytest.raises(JobsRefused) as caught:
            self.jobs(flags)
        start = f"{self.file}:"
        assert all(line.startswith(start) for line in caught.value.lines)
        return [line.removeprefix(start).strip() for line in caught.value.lines]


def row(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "prompt": f"Do {name}.", **more}


def writer(name: str, **more: Any) -> dict[str, Any]:
    return row(name, sandbox="workspace-write", **more)
