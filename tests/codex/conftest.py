"""The real Codex, the scripted model, and a home that leads the one to the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from baton.simulate.model_server import ScriptedModel


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server
