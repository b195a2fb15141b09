"""Real runs to be shown: the real Codex CLI with scripted workers, once for all tests of the room."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from baton.engine.house import House
from e2e.sim import Sim
from report.story import HOSTILE, hostile_run, story_run

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@dataclass(frozen=True)
class Recorded:
    """A machine on which things have been delegated."""

    sim: Sim
    story: str
    """A run of five tasks that depend on one another; one of them is not what its worker claims."""
    hostile: str
    """A run whose every text tries to be more than text."""

    @property
    def house(self) -> House:
        return self.sim.service.house


@pytest.fixture(scope="session")
def recorded(codex_binary: Path) -> Iterator[Recorded]:
    parent = _CACHE / "baton" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(dir=parent, prefix="r-"))
    try:
        with Sim(root, codex_binary) as sim:
            yield Recorded(sim, story_run(sim), hostile_run(sim))
    finally:
        for folder, _, _ in os.walk(root):
            Path(folder).chmod(0o700)
        shutil.rmtree(root)


@pytest.fixture
def hostile_texts() -> tuple[str, ...]:
    return HOSTILE
