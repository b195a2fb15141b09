"""A watcher names every path that was written to, or says that it cannot tell."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from baton.workspace import watcher as watching
from baton.workspace.watcher import Watcher

OLD = 1_600_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "slot" / "tree"
    (root / "lib" / "deep").mkdir(parents=True)
    for name in ("a", "b", "lib/a", "lib/deep/a"):
        (root / name).write_text(f"{name}\n")
    (root / "link").symlink_to("a")
    return root


@pytest.fixture
def watcher(root: Path) -> Iterator[Watcher]:
    made = Watcher.of(root, [b"lib", b"lib/deep"])
    if made is None:
        pytest.skip("this system does not report what is written")
    yield made
    made.close()


def unseen_by_stat(root: Path) -> None:
    """Another content of the same size, with the time set back."""
    before = (root / "lib/a").stat()
    (root / "lib/a").write_text("LIB/A\n")
    os.utime(root / "lib/a", ns=(before.st_atime_ns, before.st_mtime_ns))


def atomic(root: Path) -> None:
    (root / "lib/new").write_text("saved\n")
    (root / "lib/new").replace(root / "lib/a")


def swap_for_a_link(root: Path) -> None:
    (root / "lib/a").unlink()
    (root / "lib/a").symlink_to("/etc/hostname")


def through_memory(root: Path) -> None:
    import mmap

    with (root / "lib/a").open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    mapped[:3] = b"LIB"
    mapped.close()


SAID: list[tuple[Callable[[Path], object], set[bytes]]] = [
    (lambda root: None, set()),
    (lambda root: (root / "a").read_text(), set()),
    (lambda root: (root / "lib/deep/a").write_text("other\n"), {b"lib/deep/a"}),
    (lambda root: (root / "lib/fresh").write_text("x"), {b"lib/fresh"}),
    (lambda root: (root / "b").unlink(), {b"b"}),
    (lambda root: (root / "a").chmod(0o755), {b"a"}),
    (lambda root: os.utime(root / "a", (OLD, OLD)), {b"a"}),
    (lambda root: os.truncate(root / "a", 1), {b"a"}),
    (lambda root: (root / "a").rename(root / "lib/c"), {b"a", b"lib/c"}),
    (unseen_by_stat, {b"lib/a"}),
    (atomic, {b"lib/new", b"lib/a"}),
    (swap_for_a_link, {b"lib/a"}),
    (through_memory, {b"lib/a"}),
    (lambda root: os.mkfifo(root / "pipe"), {b"pipe"}),
]


@pytest.mark.parametrize(("act", "paths"), SAID)
def test_every_way_to_write_is_told_with_its_path(root, watcher, act, paths):
    act(root)
    assert watcher.told(()) == paths
    assert watcher.told(()) == frozenset()  # from there on


def link_write_unlink(root: Path) -> None:
    os.link(root / "a", root / "lib/alias")
    (root / "lib/alias").write_text("through the other name\n")
    (root / "lib/alias").unlink()


def link_write_replace(root: Path) -> None:
    os.link(root / "a", root / "lib/alias")
    (root / "lib/alias").write_text("through the other name\n")
    (root / "b").replace(root / "lib/alias")


def link_write_move_unlink(root: Path) -> None:
    os.link(root / "a", root / "lib/alias")
    (root / "lib/alias").write_text("through the other name\n")
    (root / "lib/alias").rename(root / "lib/other")
    (root / "lib/other").unlink()


def in_from_elsewhere(root: Path) -> None:
    outside = root.parent.parent / "outside"
    outside.write_text("x")
    outside.rename(root / "lib/in")


def out_and_gone(root: Path) -> None:
    (root / "lib/a").rename(root.parent.parent / "out")


def folder_for_a_link(root: Path) -> None:
    (root / "lib").rename(root / "was")
    (root / "lib").symlink_to("/etc")


def more_than_fits(root: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for _ in range(most // 2 + 1):
        os.utime(root / "a")
        os.utime(root / "b")


UNSAID = [
    lambda root: os.link(root / "a", root / "lib/alias"),
    link_write_unlink,
    link_write_replace,
    link_write_move_unlink,
    in_from_elsewhere,
    out_and_gone,
    lambda root: (root / "lib/made").mkdir(),
    lambda root: (root / "lib/deep").rename(root / "deep"),
    lambda root: (root / "lib").chmod(0o700),
    folder_for_a_link,
    lambda root: (root.parent / "beside").write_text("x"),
    lambda root: (root / "lib" / ".git").write_text("gitdir: /elsewhere\n"),
    lambda root: (root / ".git").write_text("gitdir: /elsewhere\n"),
    lambda root: (root / ".codex").mkdir(),  # and it stays
    lambda root: (root.parent / ".codex").mkdir(),
    more_than_fits,
]


@pytest.mark.parametrize("act", UNSAID)
def test_what_cannot_be_told_is_not_told(root, watcher, act):
    act(root)
    (root / "b").touch()
    assert watcher.told((b"",)) is None
    assert watcher.told((b"",)) is None  # for ever


def test_mount_points_of_a_sandbox_come_and_go_where_it_makes_them(root, watcher):
    for folder in (root, root.parent):
        (folder / ".codex").mkdir()
        (folder / ".codex").rmdir()
    assert watcher.told((b"",)) == frozenset()
    (root / "lib" / ".codex").mkdir()
    (root / "lib" / ".codex").rmdir()
    assert watcher.told((b"",)) is None


def test_a_mount_point_that_was_taken_from_its_sandbox_hides_no_other_name_of_a_file(root, watcher):
    probe = root.parent.parent / "probe"
    probe.touch()
    while probe.stat().st_ctime_ns <= root.parent.stat().st_ctime_ns:  # a sandbox starts no faster
        probe.touch()
    (root / ".codex").mkdir()
    os.link(root / "a", root / ".codex" / "alias")
    (root / ".codex" / "alias").write_text("through the other name\n")
    (root / ".codex" / "alias").unlink()
    (root / ".codex").rmdir()
    assert watcher.told((b"",)) is None


def test_the_times_of_all_files_are_asked_only_where_two_sandboxes_may_have_met(root, watcher, monkeypatch):
    def come_and_go():
        (root / ".codex").mkdir()
        (root / ".codex").rmdir()

    asked = []
    monkeypatch.setattr(watching, "_changed_files", lambda top, since: asked.append(top) or [])
    come_and_go()
    assert watcher.told((b"",), one_at_a_time=True) == frozenset() and asked == []
    come_and_go()
    assert watcher.told((b"",)) == frozenset() and len(asked) == 1


def with_mount_points(root: Path, watcher: Watcher) -> frozenset[bytes]:
    paths = frozenset({b".codex", b"lib/.git"})
    for path in paths:
        (root / os.fsdecode(path)).mkdir()
    assert watcher.settle() == paths
    return paths


def take(root: Path, paths: Iterable[bytes]) -> None:
    for path in paths:
        (root / os.fsdecode(path)).rmdir()


def test_folders_that_were_taken_away_by_the_caller_are_not_told_and_no_times_are_asked(
    root, watcher, monkeypatch
):
    monkeypatch.setattr(watching, "_changed_files", lambda top, since: pytest.fail("all files were asked"))
    for _ in range(2):
        made = with_mount_points(root, watcher)
        (root / "a").write_text("other\n")
        take(root, made)
        assert watcher.told((b"", b"lib/"), made) == {b"a"}
        assert watcher.told((b"", b"lib/")) == frozenset()


def test_what_else_became_of_such_a_folder_is_as_doubtful_as_ever(root, watcher, monkeypatch):
    asked = []
    monkeypatch.setattr(watching, "_changed_files", lambda top, since: asked.append(top) or [])
    made = with_mount_points(root, watcher)
    (root / ".codex").rmdir()
    (root / ".codex").mkdir()
    take(root, made)
    assert watcher.told((b"", b"lib/"), made) == frozenset() and len(asked) == 1
    made = with_mount_points(root, watcher)
    (root / "lib/.git").rmdir()
    (root / "lib/.git").mkdir()
    take(root, made)
    assert watcher.told((b"",), made) is None  # no sandbox was to make one there


def alias_in_a_mount_point(root: Path) -> None:
    os.link(root / "a", root / "lib/.git/alias")
    (root / "lib/.git/alias").write_text("through the other name\n")
    (root / "lib/.git/alias").unlink()


def alias_in_one_made_anew(root: Path) -> None:
    (root / "lib/.git").rmdir()
    (root / "lib/.git").mkdir()
    alias_in_a_mount_point(root)


def moved_and_back(root: Path) -> None:
    (root / "lib").rename(root / "elsewhere")
    (root / "elsewhere").rename(root / "lib")


@pytest.mark.parametrize(
    "act",
    [
        alias_in_a_mount_point,
        alias_in_one_made_anew,
        moved_and_back,
        lambda root: (root / "lib/.git").rename(root / "lib/.aws"),
        lambda root: (root / ".codex").chmod(0o700),
        lambda root: (root / ".codex/in").mkdir() or (root / ".codex/in").rmdir(),
    ],
)
def test_no_file_is_written_to_unseen_by_way_of_a_mount_point(root, watcher, act):
    made = with_mount_points(root, watcher)
    act(root)
    gone = {path for path in made if (root / os.fsdecode(path)).exists()}
    take(root, gone)
    assert watcher.told((b"", b"lib/"), gone) is None


def test_a_removal_that_is_not_reported_is_not_believed(root, watcher):
    made = with_mount_points(root, watcher)
    take(root, made)
    assert watcher.told((b"", b"lib/"), {*made, b"lib/.aws"}) is None


def test_without_a_program_that_knows_the_times_everything_is_looked_at(root, watcher, monkeypatch):
    monkeypatch.setenv("PATH", str(root))
    (root.parent / ".codex").mkdir()
    (root.parent / ".codex").rmdir()
    assert watcher.told((b"",)) == frozenset()
    (root / ".codex").mkdir()
    (root / ".codex").rmdir()
    assert watcher.told((b"",)) is None


def test_what_was_settled_is_no_more_told_and_its_folders_are_watched(root, watcher):
    (root / "lib/made/below").mkdir(parents=True)
    (root / "a").write_text("prepared\n")
    assert watcher.settle() == {b"lib/made", b"a"}
    (root / "lib/made/below/x").write_text("x")
    assert watcher.told(()) == {b"lib/made/below/x"}


def test_no_more_folders_are_watched_than_may_be(root, monkeypatch):
    monkeypatch.setattr(watching, "most_folders", lambda: 3)
    assert Watcher.of(root, [b"lib", b"lib/deep"]) is None
    assert Watcher.of(root, [b"lib", b"gone"]) is None
