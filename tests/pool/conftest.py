"""Machines for pools: one with the real Codex and the scripted model, one without for what needs neither."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from baton.engine.house import House
from e2e.sim import Sim
from pool.shop import Shop

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def sim(codex_binary: Path) -> Iterator[Sim]:
    """One machine for the tests of a module; each has its own pool and its own prompts."""
    parent = _CACHE / "baton" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(dir=parent, prefix="p-"))
    try:
        with Sim(root, codex_binary) as machine:
            yield machine
    finally:
        for folder, _, _ in os.walk(root):
            Path(folder).chmod(0o700)
        shutil.rmtree(root)


@pytest.fixture
def shop(sim: Sim) -> Shop:
    """A fresh pool folder on the machine with Codex."""
    return Shop(sim.service.house, sim.root / "pools" / f"shop{next(_numbers)}")


@pytest.fixture
def bare_shop(test_root: Path) -> Iterator[Shop]:
    """A pool folder of a machine of its own, for back ends that need no Codex."""
    env = {**os.environ}
    with House.open(env) as house:
        yield Shop(house, test_root / "shop")


@pytest.fixture
def folder(test_root: Path) -> Callable[[str], Path]:
    """A factory of working directories."""

    def make(name: str) -> Path:
        path = test_root / "work" / name
        path.mkdir(parents=True)
        return path.resolve()

    return make
