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
def real_codex() -> CodexBinary:
    """The real Codex; a missing one is a failure, never a skip."""
    named = os.environ.get("BATON_TEST_CODEX")
    if named is None:
        from codex_cli_bin import bundled_codex_path

        named = str(bundled_codex_path())
    return find_codex({**os.environ, "BATON_CODEX_BIN": named})


@pytest.fixture
def environ() -> Mapping[str, str]:
    """The environment a person would have; tests change a copy."""
    return dict(os.environ)


@pytest.fixture
def bench(test_root: Path, real_codex: CodexBinary) -> Bench:
    return Bench.make(test_root, real_codex)
