"""A home to install into, and the real Codex."""

from __future__ import annotations

from pathlib import Path

import pytest

from install.home import Home


@pytest.fixture
def home(own_home: Path, test_root: Path) -> Home:
    """The test's own home; its Codex folder is empty."""
    return Home(own_home, test_root / "packages")
