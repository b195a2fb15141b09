"""Fixtures of the verify room: the real Codex, a state folder, and a checkout beside a person's tree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from baton.codex.binary import CodexBinary, find_codex
from verify.bench import Bench


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def real_codex(codex_binary: Path) -> CodexBinary:
    return find_codex({**os.environ, "BATON_CODEX_BIN": str(codex_binary)})


@pytest.fixture
def environ() -> Mapping[str, str]:
    """The environment a person would have; tests change a copy."""
    return dict(os.environ)


@pytest.fixture
def bench(test_root: Path, real_codex: CodexBinary) -> Bench:
    """Its checks run in the sandbox as the helper by itself makes it, which is what runs have."""
    return Bench.make(test_root, real_codex, direct=True)
