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

from e2e.sim import Sim, Workspace

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@pytest.fixture(scope="session")
def codex_binary() -> Path:
    """The real Codex; a missing one is a failure, never a skip."""
    named = os.environ.get("BATON_TEST_CODEX")
    if named:
        return Path(named)
    from codex_cli_bin import bundled_codex_path

    return Path(bundled_codex_path())


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
