"""The real Codex, the scripted model, and a machine on which both serve Baton."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from baton.simulate.model_server import ScriptedModel
from e2e.plugin_session import Installed, install
from e2e.sim import Sim, Workspace

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@pytest.fixture(scope="module")
def machine_root() -> Iterator[Path]:
    """A folder for the tests of a module, outside the system's temporary one."""
    parent = _CACHE / "baton" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(dir=parent, prefix="e-"))
    try:
        yield root
    finally:
        for folder, _, _ in os.walk(root):
            Path(folder).chmod(0o700)
        shutil.rmtree(root)


@pytest.fixture(scope="module")
def sim(codex_binary: Path, machine_root: Path) -> Iterator[Sim]:
    """One machine for the tests of a module; each brings its own workspace and its own objectives."""
    with Sim(machine_root, codex_binary) as machine:
        yield machine


_numbers = itertools.count(1)


@pytest.fixture
def workspace(sim: Sim) -> Callable[..., Workspace]:
    """A factory of workspaces: files by path, `git=False` for a plain folder, `commit=False` for unborn."""

    def make(files: dict[str, str | bytes] | None = None, **options: Any) -> Workspace:
        return sim.workspace(f"w{next(_numbers)}", files, **options)

    return make


@pytest.fixture
def delegate(sim: Sim) -> Callable[..., dict[str, Any]]:
    """`delegate_task` or `delegate_tasks` with the given arguments; its answer."""
    return sim.delegate


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """A model for real sessions; every request to it is one that its script foresees."""
    with ScriptedModel() as running:
        yield running
        assert not running.surprises


@pytest.fixture
def installed(codex_binary: Path, model: ScriptedModel, test_root: Path) -> Installed:
    """The real Codex with the plugin in it."""
    return install(codex_binary, model, test_root)
