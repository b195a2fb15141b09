"""Folders of a person and a project, and the catalogue of a Codex."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from baton.contract.catalogue import ModelEntry

WriteLayer = Callable[[str], Path]

_LOW_TO_MAX = ("low", "medium", "high", "xhigh", "max")


@pytest.fixture
def codex_home(own_home: Path) -> Path:
    return own_home / ".codex"


@pytest.fixture
def project(test_root: Path) -> Path:
    folder = test_root / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def person(codex_home: Path) -> WriteLayer:
    return lambda text: _write(codex_home / "baton" / "policy.toml", text)


@pytest.fixture
def repository(project: Path) -> WriteLayer:
    return lambda text: _write(project / ".codex" / "baton.toml", text)


@pytest.fixture
def catalogue() -> list[ModelEntry]:
    return [
        ModelEntry(slug="gpt-5.6-luna", efforts=_LOW_TO_MAX, upgrade="gpt-6-luna"),
        ModelEntry(slug="gpt-6-luna", efforts=_LOW_TO_MAX),
        ModelEntry(slug="gpt-6.1-luna", efforts=_LOW_TO_MAX, visibility="hide"),
        ModelEntry(slug="gpt-5.6-terra", efforts=(*_LOW_TO_MAX, "ultra")),
        ModelEntry(slug="gpt-6.1-terra", efforts=(*_LOW_TO_MAX, "ultra")),
        ModelEntry(slug="gpt-5.10-terra", efforts=(*_LOW_TO_MAX, "ultra")),
        ModelEntry(slug="gpt-5.6-sol", efforts=("medium", "ultra")),
        ModelEntry(slug="gpt-5.5", efforts=("low", "medium", "high", "xhigh")),
    ]


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file
