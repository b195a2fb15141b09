"""The capture is what the worktree holds, whatever the worker did to it; nothing vanishes in silence."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from baton.contract.tree import ChangeKind
from baton.workspace.limits import Limits
from baton.workspace.worktree_git import give_git
from workspace.person import Person, on_disk

BASE = "refs/runs/r1/base"
TASK = "refs/runs/r1/tasks/t/1"


@pytest.fixture
def work(person, open_repository, tmp_path):
    """A worktree of the person's repository, and a function that captures it."""

    class Work:
        aside = tmp_path / "aside"

        def __init__(self, limits: Limits | None = None) -> None:
            self.repo = open_repository(person, limits)
            self.base = self.repo.snapshot(BASE, "r1")
            self.worktree = self.repo.add_worktree("r1-1", self.base.commit)
            self.root = self.worktree.root
            self.hand = Person(self.root)

        def capture(self, **options):
            return self.repo.capture(self.worktree, self.base, TASK, self.aside, **options)

    return Work


def kinds(captured) -> dict[bytes, ChangeKind]:
    return {change.path: change.kind for change in captured.changes}


def test_an_untouched_worktree_is_no_change(work):
    w = work()
    captured = w.capture()
    assert captured.changes == ()
    assert captured.tree == w.base.tree
    assert captured.aside is None


def test_every_kind_of_change_is_told_apart(work, content):
    w = work()
    w.hand.write("src/a.py", "a = 2\n")
    w.hand.write("added", b"\0binary\xff")
    os.chmod(w.root / "src/b.py", 0o755)
    (w.root / "bin/run").rename(w.root / "bin/renamed")
    (w.root / "link").unlink()
    w.hand.write("link", "a file now")
    w.hand.link("fresh-link", "src/b.py")
    captured = w.capture()
    assert kinds(captured) == {
        b"src/a.py": ChangeKind.MODIFIED,
        b"added": ChangeKind.ADDED,
        b"src/b.py": ChangeKind.MODE,
        b"bin/renamed": ChangeKind.RENAMED,
        b"link": ChangeKind.TYPE,
        b"fresh-link": ChangeKind.ADDED,
    }
    assert next(c for c in captured.changes if c.old_path).touched == (b"bin/run", b"bin/renamed")
    assert content(w.repo, captured.commit) == on_disk(w.root)
    assert captured.leaving_links == ()
    assert w.repo.resolve(TASK) == captured.commit


def test_folders_and_files_that_change_places(work, content):
    w = work()
    shutil.rmtree(w.root / "src")
    w.hand.write("src", "a file")
    (w.root / "link").unlink()
    w.hand.write("link/inside", "x")
    (w.root / "bin/run").unlink()
    w.hand.write("bin/run/deep/er", "x")
    captured = w.capture()
    assert content(w.repo, captured.commit) == on_disk(w.root)


def test_a_folder_replaced_by_a_link_out_is_a_violation_and_is_not_followed(work, content, tmp_path):
    w = work()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.py").write_text("secret")
    shutil.rmtree(w.root / "src")
    w.hand.link("src", str(tmp_path / "outside"))
    captured = w.capture()
    # The untouched link goes through it now, and so out as well.
    assert captured.leaving_links == (b"link", b"src")
    assert content(w.repo, captured.commit) == on_disk(w.root)


def test_links_that_leave_are_named_and_others_are_not(work):
    w = work()
    w.hand.link("abs", "/etc/passwd")
    w.hand.link("up", "../x")
    w.hand.link("src/deep", "../../x")
    w.hand.link("src/fine", "../bin/run")
    w.hand.link("dangling", "no/where")
    w.hand.link("self", "self")
    w.hand.link("here", ".")
    captured = w.capture()
    assert captured.leaving_links == (b"abs", b"self", b"src/deep", b"up")


def test_a_leaving_link_of_the_base_is_not_the_workers(person, work):
    person.link("abs", "/etc/hosts")
    w = work()
    w.hand.link("through", "abs")
    captured = w.capture()
    assert captured.leaving_links == (b"through",)


def test_ignored_content_is_listed_kept_aside_and_not_in_the_tree(work, content):
    w = work()
    w.hand.write("build/out/x.o", "object", 0o755)
    w.hand.link("build/l", "/etc")
    w.hand.write("src/y.log", "log")
    captured = w.capture()
    assert captured.changes == ()
    assert captured.ignored == (b"build/", b"src/y.log")
    assert (w.aside / "build/out/x.o").read_text() == "object"
    assert os.readlink(w.aside / "build/l") == "/etc"
    assert not captured.aside_cut


def test_ignore_rules_made_by_the_worker_hide_nothing(work):
    w = work()
    w.hand.write(".gitignore", "*\n")
    w.hand.write("hidden/evil.py", "x")
    w.hand.write("src/a.py", "tracked files are not ignored\n")
    captured = w.capture()
    assert kinds(captured) == {b".gitignore": ChangeKind.MODIFIED, b"src/a.py": ChangeKind.MODIFIED}
    assert b"hidden/" in captured.ignored
    assert (w.aside / "hidden/evil.py").exists()


def test_attributes_made_by_the_worker_change_nothing(work, content):
    w = work()
    w.hand.write(
        ".gitattributes", "* text=auto eol=crlf ident filter=x diff=x merge=x working-tree-encoding=UTF-16\n"
    )
    w.hand.write("crlf", b"a\r\nb\n$Id$\n")
    captured = w.capture()
    assert content(w.repo, captured.commit)[b"crlf"][1] == b"a\r\nb\n$Id$\n"
    assert b"+a\r\n" in w.repo.diff(w.base.commit, captured.commit, [b"crlf"])


def test_nested_repositories_are_listed_and_kept_aside(work, content):
    w = work()
    inner = Person.init(w.root / "inner")
    inner.write("x", "1")
    inner.commit()
    Person.init(w.root / "empty")
    w.hand.write("half/.git/config", "not a repository")
    w.hand.write("half/file", "beside it")
    w.hand.write("odd/.GIT/config", "x")
    (w.root / "src/b.py").unlink()
    swapped = Person.init(w.root / "src/b.py")
    swapped.write("in", "1")
    swapped.commit()
    captured = w.capture()
    assert captured.nested == (b"empty", b"half/.git", b"inner", b"odd/.GIT", b"src/b.py")
    assert kinds(captured) == {b"half/file": ChangeKind.ADDED, b"src/b.py": ChangeKind.DELETED}
    assert (w.aside / "inner/x").read_text() == "1"
    assert (w.aside / "half/.git/config").exists()


def test_special_files_are_listed_and_do_not_block(work, monkeypatch):
    w = work()
    monkeypatch.chdir(w.root)  # the address of a socket has to be short
    os.mkfifo(w.root / "pipe")
    os.mkfifo(w.root / "src/.gitignore")
    (w.root / ".gitignore").unlink()
    os.mkfifo(w.root / ".gitignore")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
    captured = w.capture()
    assert sorted(captured.unsupported) == [b".gitignore", b"pipe", b"sock", b"src/.gitignore"]
    assert kinds(captured) == {b".gitignore": ChangeKind.DELETED}


def test_a_git_file_that_was_tampered_with_is_neither_believed_nor_kept(work, tmp_path):
    w = work()
    evil = Person.init(tmp_path / "evil")
    evil.git("config", "core.fsmonitor", f"touch {tmp_path}/ran")
    evil.git("config", "core.worktree", "/")
    (w.root / ".git").unlink()
    (w.root / ".git").write_text(f"gitdir: {evil.root}/.git\n")
    w.hand.write("new", "n")
    captured = w.capture()
    assert kinds(captured) == {b"new": ChangeKind.ADDED}
    assert captured.nested == (b".git",)
    w.repo.reset_worktree(w.worktree, w.base.commit)
    assert not (tmp_path / "ran").exists()
    give_git(w.repo, w.worktree, w.base.commit, w.base.head)
    assert w.hand.git("status", "--porcelain") == b""
    (w.root / ".git").unlink()
    shutil.copytree(evil.root / ".git", w.root / ".git")
    captured = w.capture()
    assert captured.nested == (b".git",)
    assert (w.aside / ".git/config").exists()
    assert not (tmp_path / "ran").exists()


def test_odd_names_are_captured(work, content):
    w = work()
    for name in (
        b"n\nl",
        b'q"',
        b"\xff\xfe",
        b"back\\slash",
        b"-x",
        b":(top)x",
        "é".encode(),
        "e\u0301".encode(),
    ):
        w.hand.write(b"new/" + name, name)
    captured = w.capture()
    assert content(w.repo, captured.commit) == on_disk(w.root)
    assert len(captured.changes) == 8


def test_too_many_files_are_bounded_and_said(work):
    w = work(Limits(captured_files=5))
    for number in range(8):
        w.hand.write(f"many/f{number}", "x")
    captured = w.capture()
    assert len(captured.changes) == 5
    assert captured.over_limit is not None and "3 paths are not captured" in captured.over_limit
    assert captured.unsupported == (b"many/f5", b"many/f6", b"many/f7")


def test_a_huge_file_is_bounded_and_said(work):
    w = work(Limits(captured_bytes=10_000_000, kept_bytes=10_000_000))
    with (w.root / "huge").open("wb") as file:
        file.truncate(5 * 2**30)
    w.hand.write("small", "x")
    (w.root / "build").mkdir()
    with (w.root / "build/huge").open("wb") as file:
        file.truncate(5 * 2**30)
    captured = w.capture()
    assert kinds(captured) == {b"small": ChangeKind.ADDED}
    assert captured.unsupported == (b"huge",)
    assert captured.over_limit is not None
    assert captured.aside_cut


def test_a_walk_without_end_is_bounded_and_said(work):
    w = work(Limits(walked_entries=3))
    assert "more than 3 entries" in (w.capture().over_limit or "")


@pytest.mark.parametrize("name", [b"f", b"f" * 250])
def test_what_no_path_is_short_enough_for_is_said(work, name):
    """A folder that cannot be listed, and a file in one that can."""
    w = work()
    w.hand.write("src/a.py", "a = 2\n")
    room = os.pathconf(w.root, "PC_PATH_MAX") - len(os.fsencode(w.root)) - 1
    at, made = os.open(w.root, os.O_RDONLY), 0
    while made < (room - 100 if len(name) > 1 else room):
        os.mkdir(b"d" * 99, dir_fd=at)
        below = os.open(b"d" * 99, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at, made = below, made + 100
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
    captured = w.capture()
    assert kinds(captured) == {b"src/a.py": ChangeKind.MODIFIED}
    # Where the last folder can just be named and its file cannot, both are.
    assert captured.unsupported and all(path.startswith(b"d" * 99 + b"/") for path in captured.unsupported)
    assert w.repo.add_worktree("r1-1", w.base.commit) == w.worktree
    assert sorted(os.listdir(w.root)) == [".git", ".gitignore", "bin", "link", "src"]


def test_links_made_by_baton_are_no_change_but_what_replaced_them_is(person, work, content):
    person.write("node_modules/dep/index.js", "dep")
    person.write(".gitignore", "node_modules/\nbuild/\n*.log\n")
    w = work()
    made = w.repo.link_dependencies(w.worktree, ["node_modules"], "link")
    assert made == (w.root / "node_modules",)
    captured = w.capture()
    assert (captured.changes, captured.ignored) == ((), ())
    (w.root / "node_modules").unlink()
    w.hand.write("node_modules/mine.js", "by the worker")
    captured = w.capture()
    assert captured.ignored == (b"node_modules/",)
    assert (w.aside / "node_modules/mine.js").exists()
    assert (person.root / "node_modules/dep/index.js").read_text() == "dep"


def test_the_capture_is_complete_without_the_worktree_and_repeatable(work, content):
    w = work()
    w.hand.write("src/a.py", "a = 2\n")
    first = w.capture()
    second = w.capture()
    assert first.tree == second.tree
    held = content(w.repo, first.commit)
    w.repo.remove_worktree(w.worktree)
    assert content(w.repo, second.commit) == held


def test_content_equal_to_an_unreachable_object_of_the_person_is_owned(person, work, content):
    w = work()
    person.git("hash-object", "-w", "--stdin", input=b"only loose over there\n")
    w.hand.write("same", "only loose over there\n")
    captured = w.capture()
    person.git("gc", "-q", "--prune=now")
    assert content(w.repo, captured.commit)[b"same"][1] == b"only loose over there\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_locked_files_and_folders_are_opened_and_captured(work, content):
    w = work()
    w.hand.write("locked/file", "x", 0o000)
    os.chmod(w.root / "locked", 0o000)
    captured = w.capture()
    assert content(w.repo, captured.commit)[b"locked/file"] == ("100644", b"x")


def test_a_diff_is_bounded(work):
    w = work(Limits(diff_bytes=1000))
    w.hand.write("src/a.py", "line\n" * 1000)
    shown = w.repo.diff(w.base.commit, w.capture().commit)
    assert len(shown) < 1100
    assert b"[cut: the diff is longer than 1000 bytes]" in shown


def test_binary_content_is_in_a_diff_on_demand(work):
    w = work()
    w.hand.write("bin.dat", b"\0\1\2" * 50)
    commit = w.capture().commit
    assert b"Binary files" in w.repo.diff(w.base.commit, commit)
    assert b"GIT binary patch" in w.repo.diff(w.base.commit, commit, binary=True)


def test_kept_content_stays_below_its_own_folder(work, tmp_path: Path):
    w = work()
    w.hand.write("build/a", "1")
    w.aside.mkdir()
    (w.aside / "build").symlink_to(tmp_path)  # an old leftover must not lead elsewhere
    captured = w.capture()
    assert not (tmp_path / "a").exists()
    assert captured.aside is not None
