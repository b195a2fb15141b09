"""What every test of this room may ask for."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from baton.process.forked import guards_forked
from process.stubborn import Stubborn


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def env() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


@pytest.fixture
def stubborn(test_root: Path) -> Stubborn:
    return Stubborn(test_root / "pids")


@pytest.fixture(params=["own", "forked"])
async def guards(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Guards that are started for each child, then guards that a server forks: they promise the same."""
    if request.param == "own":
        yield
        return
    async with guards_forked():
        yield
