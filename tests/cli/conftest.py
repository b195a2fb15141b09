"""Runs the `baton` command in this process, as a person types it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from baton.cli.main import baton

Run = Callable[..., Result]


@pytest.fixture
def run(test_root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("policy", "show")` in an empty folder."""
    folder = test_root / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return lambda *arguments: CliRunner().invoke(baton, list(arguments), prog_name="baton")
