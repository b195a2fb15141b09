"""Mount points made in advance go as they came: nothing else is touched, nothing of them is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from baton.workspace.create import MOUNT_POINTS
from baton.workspace.mount_points import make_mount_points, take_mount_points

NAMES = frozenset(os.fsencode(name) for name in MOUNT_POINTS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "slot" / "tree"
    (root / "lib" / "deep").mkdir(parents=True)
    (root / ".git").write_text("gitdir: ../git\n")
    (root / "lib" / ".codex").mkdir()
    (root / "lib" / ".codex" / "config.toml").write_text("theirs\n")
    (root / "lib" / ".agents").symlink_to("deep")
    return root


@pytest.fixture
def admin(tmp_path: Path) -> Path:
    (tmp_path / "admin").mkdir()
    return tmp_path / "admin"


def everything(root: Path) -> dict[str, tuple[int, int]]:
    found = (path for path in root.parent.rglob("*"))
    return {str(path): (path.lstat().st_ino, path.lstat().st_mode) for path in found}


def test_they_are_made_where_they_are_missing_and_taken_away_as_if_they_had_never_been(root, admin):
    before = everything(root)
    made = make_mount_points(root, admin, {b"", b"lib", b"lib/deep"})
    expected = NAMES - {b".git"} | {b"lib/.git", b"lib/.aws"} | {b"lib/deep/" + name for name in NAMES}
    assert made == expected
    assert everything(root).keys() - before.keys() == {
        os.fsdecode(os.fsencode(root) + b"/" + path) for path in made
    }
    assert not any(any((root / os.fsdecode(path)).iterdir()) for path in made)
    assert take_mount_points(root, admin) == made
    assert everything(root) == before
    assert take_mount_points(root, admin) == frozenset()


def test_one_that_holds_something_stays_and_is_told(root, admin):
    make_mount_points(root, admin, {b"lib"})
    (root / "lib/.git/HEAD").write_text("x")
    assert take_mount_points(root, admin) is None
    assert (root / "lib/.git/HEAD").read_text() == "x" and not (root / "lib/.aws").exists()


def test_one_that_is_gone_or_became_something_else_is_told(root, admin):
    make_mount_points(root, admin, {b"lib"})
    (root / "lib/.git").rmdir()
    assert take_mount_points(root, admin) is None
    make_mount_points(root, admin, {b"lib"})
    (root / "lib/.git").rmdir()
    (root / "lib/.git").write_text("gitdir: elsewhere\n")
    assert take_mount_points(root, admin) is None
    assert (root / "lib/.git").read_text() == "gitdir: elsewhere\n"


@pytest.mark.parametrize("swapped", ["lib/deep", "lib", ""])
def test_no_link_is_followed_to_an_empty_folder_elsewhere(root, admin, tmp_path, swapped):
    make_mount_points(root, admin, {b"lib/deep"})
    at = root / swapped
    at.rename(tmp_path / "moved")
    at.symlink_to(tmp_path / "theirs")
    behind = tmp_path / "theirs" / (root / "lib/deep").relative_to(at) / ".codex"
    behind.mkdir(parents=True)
    assert take_mount_points(root, admin) is None
    assert behind.is_dir()


def test_none_is_made_behind_a_link(root, admin, tmp_path):
    (tmp_path / "theirs").mkdir()
    (root / "out").symlink_to(tmp_path / "theirs")
    with pytest.raises(NotADirectoryError):
        make_mount_points(root, admin, {b"out"})
    assert not any((tmp_path / "theirs").iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_its_worker_has_locked_is_opened(root, admin):
    made = make_mount_points(root, admin, {b"lib/deep"})
    (root / "lib/deep").chmod(0o500)
    (root / "lib").chmod(0)
    assert take_mount_points(root, admin) == made
    assert not any((root / "lib/deep").iterdir())
