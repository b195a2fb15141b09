"""A program is found, or said to be missing, before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.verify.program import Missing, Program, find_program


def program(folder: Path, name: str, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_first_folder_of_path_wins_and_links_are_not_resolved(tmp_path: Path) -> None:
    real = program(tmp_path / "b", "multi")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "tool").symlink_to(real)
    program(tmp_path / "b", "tool")
    found = find_program("tool", cwd=tmp_path, path=f"{tmp_path / 'a'}:{tmp_path / 'b'}")
    assert isinstance(found, Program)
    assert found.path == tmp_path / "a" / "tool"


def test_name_with_a_slash_is_relative_to_the_workspace(tmp_path: Path) -> None:
    program(tmp_path, "tools/run")
    found = find_program("tools/run", cwd=tmp_path, path="")
    assert isinstance(found, Program)
    assert found.path == tmp_path / "tools" / "run"
    assert found.interpreter == Path("/bin/sh")


@pytest.mark.parametrize(
    ("name", "text", "mode", "word"),
    [
        ("./none", None, 0, "does not exist"),
        ("./folder", None, 0, "directory"),
        ("./plain", "#!/bin/sh\n", 0o644, "not executable"),
        ("./odd", "#!/no/interpreter -x\n", 0o755, "/no/interpreter"),
        ("./env", "#!/usr/bin/env no-such-thing\n", 0o755, "no-such-thing"),
        ("nowhere", None, 0, "not installed"),
    ],
)
def test_why_a_program_is_missing_is_said(
    tmp_path: Path, name: str, text: str | None, mode: int, word: str
) -> None:
    (tmp_path / "folder").mkdir()
    if text is not None:
        program(tmp_path, name, text, mode)
    found = find_program(name, cwd=tmp_path, path="/usr/bin:/bin")
    assert isinstance(found, Missing)
    assert word in found.why
