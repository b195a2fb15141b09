"""What every test of this room may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
