"""A program that has a file open, or opens it, just when the file changes its name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from baton.contract.errors import WorkspaceMoved
from baton.workspace import apply as apply_module
from baton.workspace import undo as undo_module
from baton.workspace.journal_place import journals
from baton.workspace.lease import leased
from baton.workspace.renameat import exchange
from workspace.test_apply import OLD, at, land
from workspace.trees import FILE, make_tree, read_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")

NEW = {**OLD, b"src/a.py": (FILE, b"new"), b"src/b.py": (FILE, b"new too")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "w", OLD)


def test_a_file_is_leased_only_while_nobody_has_it_open(root: Path) -> None:
    folder = os.open(root / "src", os.O_RDONLY)
    with leased(folder, b"a.py") as lease:
        assert lease is not None and lease.unbroken and lease.is_at(folder, b"a.py")
        assert not lease.is_at(folder, b"b.py") and not lease.is_at(folder, b"none")
        with pytest.raises(BlockingIOError):
            os.open(root / "src/a.py", os.O_WRONLY | os.O_NONBLOCK)
        assert not lease.unbroken
    with (root / "src/a.py").open(), leased(folder, b"a.py") as lease:
        assert lease is None
    for other in (b"none", b"deep"):
        with leased(folder, other) as lease:
            assert lease is None
    os.close(folder)


def opening(path: Path, before: int) -> Callable[..., None]:
    """An exchange just before whose n-th call a program opens the file."""
    calls = 0

    def exchanging(*names: object) -> None:
        nonlocal calls
        calls += 1
        if calls == before:
            with pytest.raises(BlockingIOError):
                os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        exchange(*names)  # type: ignore[arg-type]

    return exchanging


def test_a_file_that_is_opened_while_it_is_exchanged_stays_where_it_is(root: Path) -> None:
    # The first exchange of an apply tries whether there is any.
    with (
        mock.patch.object(apply_module, "exchange", opening(root / "src/a.py", before=2)),
        pytest.raises(WorkspaceMoved, match=r"src/a\.py is being opened in the workspace"),
    ):
        land(root, OLD, NEW)
    assert read_files(root) == OLD
    assert not list(journals(root, None))


def test_a_file_that_is_opened_while_it_is_taken_back_keeps_its_place(root: Path) -> None:
    def fail() -> None:
        (root / "src/b.py").write_text("mine")

    with (
        mock.patch.object(undo_module, "exchange", opening(root / "src/a.py", before=1)),
        pytest.raises(WorkspaceMoved, match=r"src/a\.py was edited meanwhile and kept"),
    ):
        land(root, OLD, NEW, step=at("do 1", fail))
    assert (root / "src/a.py").read_text() == "new"
    (journal,) = journals(root, None)
    assert b"one" in {slot.read_bytes() for slot in (journal / "slots").iterdir()}


def test_what_is_written_late_into_a_file_that_was_open_is_kept_in_the_journal(root: Path) -> None:
    """A program opened the new content, which was then taken back, and writes when all is over."""
    opened = []

    def open_and_fail() -> None:
        opened.append((root / "src/a.py").open("a"))
        (root / "src/b.py").write_text("mine")

    with pytest.raises(WorkspaceMoved, match=r"src/b\.py was changed"):
        land(root, OLD, NEW, step=at("do 1", open_and_fail))
    with opened[0] as editor:
        editor.write(" and mine")
    assert read_files(root) == {**OLD, b"src/b.py": (FILE, b"mine")}
    (journal,) = journals(root, None)
    assert b"new and mine" in {slot.read_bytes() for slot in (journal / "slots").iterdir()}
