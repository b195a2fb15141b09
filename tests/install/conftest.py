"""A home to install into, and the real Codex."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from install.home import Home


@pytest.fixture
def home(own_home: Path, test_root: Path) -> Home:
    """The test's own home; its Codex folder is empty."""
    return Home(own_home, test_root / "packages")


@pytest.fixture(scope="session")
def codex_binary() -> Path:
    """The real Codex; a missing one is a failure, never a skip."""
    named = os.environ.get("BATON_TEST_CODEX")
    if named:
        return Path(named)
    from codex_cli_bin import bundled_codex_path

    return Path(bundled_codex_path())
