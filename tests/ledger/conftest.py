"""A ledger in the test's own state folder, and records to put into it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def state() -> StateFolder:
    return StateFolder.find()


@pytest.fixture
def ledger(state: StateFolder) -> Iterator[Ledger]:
    with Ledger.open(state) as opened:
        yield opened


@pytest.fixture
def program_env() -> dict[str, str]:
    """The environment for a Python program of a test that imports the package."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
