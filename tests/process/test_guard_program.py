"""Which form of the guard is started: the compiled one where Python itself would take it."""

import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from baton.process import guard, tree
from baton.process.guarded import guard_program


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "guard.py"
    shutil.copyfile(guard.__file__, copy)
    monkeypatch.setattr(guard, "__file__", str(copy))
    return copy


def test_source_is_taken_where_nothing_is_compiled(source: Path) -> None:
    assert guard_program() == str(source)


def test_compiled_form_of_this_very_source_is_taken_and_works(source: Path) -> None:
    py_compile.compile(str(source))
    assert guard_program() == tree.compiled_guard() != str(source)
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-E", guard_program(), "--", "/bin/sh", "-c", "exit 7"], check=False
    )
    assert ended.returncode == 7


@pytest.mark.parametrize("change", ["time", "size", "cut"])
def test_compiled_form_of_another_source_is_not_taken(source: Path, change: str) -> None:
    py_compile.compile(str(source))
    if change == "time":
        os.utime(source, (1, 1))
    elif change == "size":
        facts = source.stat()
        source.write_text(source.read_text() + "\n")
        os.utime(source, (facts.st_atime, facts.st_mtime))
    else:
        os.truncate(tree.compiled_guard(), 7)
    assert guard_program() == str(source)
