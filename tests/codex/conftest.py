"""The real Codex, the scripted model, and a home that leads the one to the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.simulate.model_server import ScriptedModel


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def codex_binary() -> Path:
    """The real Codex; a missing one is a failure, never a skip."""
    named = os.environ.get("BATON_TEST_CODEX")
    if named:
        return Path(named)
    from codex_cli_bin import bundled_codex_path

    return Path(bundled_codex_path())


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server
