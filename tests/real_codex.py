"""The Codex under test."""

from __future__ import annotations

import os
from pathlib import Path


def real_codex() -> Path:
    """The one that BATON_TEST_CODEX names, else the one of the test environment, which must have it."""
    named = os.environ.get("BATON_TEST_CODEX")
    if named:
        return Path(named)
    from codex_cli_bin import bundled_codex_path

    return Path(bundled_codex_path())
