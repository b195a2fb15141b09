"""Trees and files that are made without an index are those that git makes with one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.ledger.state import StateFolder
from baton.workspace import checkout
from baton.workspace.checkout import advance, check_out
from baton.workspace.git import Git, GitFailed
from baton.workspace.index import update_index
from baton.workspace.locate import locate
from baton.workspace.loose import blob_id, write_object
from baton.workspace.repository import PrivateRepository
from baton.workspace.tree_edit import edit_tree
from baton.workspace.tree_objects import TreeEntry
from workspace.person import Person, on_disk

FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000

PATHS = [b"a", b"b.c", b"b/c", b"b/d/e", b"b/d/f", b"b-/x", b"\xff", b"with space", b"new/deep/one", b"z/z"]
PATHS += [b"b\r/c", b"b\r/y"]  # beside b/c: git takes a carriage return at the end of a line off
ENTRY = st.tuples(st.sampled_from([FILE, PROGRAM, LINK]), st.sampled_from([b"1\n", b"2\n", b""]))
BEFORE = st.dictionaries(st.sampled_from(PATHS), ENTRY)
EDITS = st.dictionaries(st.sampled_from(PATHS), st.none() | ENTRY, max_size=5)


@pytest.fixture(scope="module", params=["sha1", "sha256"])
def repo(request: pytest.FixtureRequest) -> Iterator[PrivateRepository]:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(os.path.realpath(folder))
        person = Person.init(top / "project", f"--object-format={request.param}")
        state = StateFolder.find({"BATON_STATE": str(top / "state")})
        git = Git.find()
        yield PrivateRepository.open(state, locate(person.root, git), git=git)


def stored(repo: PrivateRepository, entry: tuple[int, bytes]) -> TreeEntry:
    mode, content = entry
    return TreeEntry(mode, write_object(repo.store, "blob", content, repo.site.object_format))


def by_git(repo: PrivateRepository, tree: str | None, entries: dict[bytes, TreeEntry | None]) -> str:
    index = repo.path / "indexes" / "test"
    index.unlink(missing_ok=True)
    if tree is not None:
        repo.run(["read-tree", tree], index=index)
    lines = [(one.mode, one.oid, path) if one else (0, repo.zero, path) for path, one in entries.items()]
    update_index(repo, index, repo.site.root, lines, [])
    return repo.run(["write-tree"], index=index).stdout.decode().strip()


@settings(max_examples=60, deadline=None)
@given(before=BEFORE, edits=EDITS, more=EDITS)
def test_an_edited_tree_is_the_one_that_git_writes(repo, before, edits, more):
    tree = by_git(repo, None, {path: stored(repo, entry) for path, entry in before.items()})
    for changes in (edits, more):  # the second on one whose folders are remembered
        entries = {path: stored(repo, entry) if entry else None for path, entry in changes.items()}
        expected = by_git(repo, tree, entries)
        edited = edit_tree(repo, tree, entries)
        assert edited is not None
        assert edited.tree == expected
        assert edited.raw == repo.raw_changes(tree, expected)
        repo.run(["fsck", "--connectivity-only", expected])
        tree = expected


def test_what_stands_in_the_way_of_another_kind_is_left_to_git(repo):
    one = stored(repo, (FILE, b"1\n"))
    tree = by_git(repo, None, {b"a": one, b"b/c": one})
    assert edit_tree(repo, tree, {b"b": one}) is None
    assert edit_tree(repo, tree, {b"b": None}) is None
    assert edit_tree(repo, tree, {b"a/x": one}) is None
    assert edit_tree(repo, tree, {b"x": one, b"x/y": one}) is None
    assert edit_tree(repo, tree, {b"line\nbreak": one}) is None
    assert edit_tree(repo, tree, {b"b/c": one}).tree == tree


@pytest.mark.parametrize("left", [None, b"", b"half"])
def test_a_folder_that_cannot_be_read_loses_none_of_its_files(repo, left):
    files = {name: stored(repo, (FILE, str(left).encode() + name)) for name in (b"sub/a", b"sub/b")}
    tree = by_git(repo, None, files)
    edited = {b"sub/a": stored(repo, (FILE, b"2\n"))}
    file = repo.loose(repo.run(["rev-parse", f"{tree}:sub"]).stdout.decode().strip())
    whole = file.read_bytes()
    file.unlink()
    if left is not None:
        file.write_bytes(whole[:9] if left else left)
    try:
        assert edit_tree(repo, tree, edited) is None
    except GitFailed:
        assert left == b"half"


@settings(max_examples=30, deadline=None)
@given(before=BEFORE, on=BEFORE)
def test_files_are_checked_out_as_git_does(repo, before, on):
    tree = by_git(repo, None, {path: stored(repo, entry) for path, entry in before.items()})
    commit = repo.commit_tree(tree, [], "test\n")
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours", Path(folder) / "theirs"
        for root in (ours, theirs):
            hand = Person(root)
            root.mkdir()
            for path in before:
                (root / os.fsdecode(path)).parent.mkdir(parents=True, exist_ok=True)
            for path, (mode, content) in on.items():
                hand.link(path, content or b"x") if mode == LINK else hand.write(path, content, mode & 0o777)
        wanted = sorted(path for path, (mode, content) in before.items() if content or mode != LINK)
        assert check_out(repo, ours, commit, wanted)
        index = repo.path / "indexes" / "test"
        index.unlink(missing_ok=True)
        repo.run(["read-tree", tree], index=index)
        given_ = b"\0".join(wanted) + b"\0" if wanted else b""
        repo.run(
            ["checkout-index", "--force", "-q", "-z", "--stdin"], index=index, work_tree=theirs, input=given_
        )
        assert on_disk(ours) == on_disk(theirs)
        for path in wanted:
            full = os.fsencode(ours) + b"/" + path
            assert os.lstat(full).st_mode == os.lstat(os.fsencode(theirs) + b"/" + path).st_mode
            asked = repo.run(["rev-parse", tree.encode() + b":" + path]).stdout.decode().strip()
            assert blob_id(full, repo.site.object_format) == asked


@settings(max_examples=25, deadline=None)
@given(before=BEFORE, edits=EDITS)
def test_a_worktree_is_brought_to_a_commit_as_git_does(repo, before, edits):
    entries = {path: stored(repo, entry) for path, entry in before.items() if entry[1]}
    old = repo.commit_tree(by_git(repo, None, entries), [], "old\n")
    changed = {
        path: stored(repo, entry) if entry else None
        for path, entry in edits.items()
        if entry is None or entry[1]
    }
    new = repo.commit_tree(by_git(repo, repo.tree_of(old), changed), [], "new\n")
    ours, theirs = repo.add_worktree("ours", old), repo.add_worktree("theirs", new)
    kept = {path: changed.get(path, entry) for path, entry in entries.items()}
    goes = any(entry is None for entry in kept.values())
    assert advance(repo, ours, old, new) is not goes
    if goes:
        assert repo.run(["ls-files", "-s"], index=ours.index).stdout == listed(repo, old)
        return
    assert on_disk(ours.root) == on_disk(theirs.root)
    assert repo.run(["ls-files", "-s"], index=ours.index).stdout == listed(repo, new)
    options = {"git_dir": ours.admin, "work_tree": ours.root, "index": ours.index}
    assert repo.run(["diff-files", "--name-only"], **options).stdout == b""


def listed(repo: PrivateRepository, commit: str) -> bytes:
    lines = repo.run(["ls-tree", "-r", commit]).stdout.replace(b" blob ", b" ").splitlines()
    return b"".join(line.replace(b"\t", b" 0\t") + b"\n" for line in lines)


def test_what_is_no_file_or_is_large_is_left_to_git_and_nothing_is_written(repo, tmp_path, monkeypatch):
    small, large = stored(repo, (FILE, b"1\n")), stored(repo, (FILE, os.urandom(4096)))
    packed = stored(repo, (FILE, os.urandom(64)))
    commit = repo.commit_tree(
        by_git(repo, None, {b"a": small, b"b/c": small, b"large": large, b"packed": packed}), [], "test\n"
    )
    monkeypatch.setattr(checkout, "MOST_BYTES", 2048)
    (tmp_path / "b").mkdir()
    for wanted in (b"b", b"large", b"missing"):
        assert not check_out(repo, tmp_path, commit, [b"a", wanted])
    assert list(tmp_path.iterdir()) == [tmp_path / "b"]
    # One that does not lie singly comes from git.
    repo.run(["repack", "-a", "-d", "-q"], borrow=False)
    repo.run(["pack-objects", "-q", str(repo.store / "pack" / "pack")], input=packed.oid.encode() + b"\n")
    loose = repo.loose(packed.oid)
    assert loose is not None
    loose.unlink()
    assert check_out(repo, tmp_path, commit, [b"a", b"packed"])
    assert blob_id(os.fsencode(tmp_path / "packed"), repo.site.object_format) == packed.oid
    monkeypatch.setattr(checkout, "MOST_BYTES", 32)
    assert not check_out(repo, tmp_path, commit, [b"packed"])


def test_what_is_small_in_the_store_and_large_on_disk_is_left_to_git(repo, tmp_path, monkeypatch):
    zeros = stored(repo, (FILE, bytes(checkout.MOST_BYTES + 1)))
    loose = repo.loose(zeros.oid)
    assert loose is not None and loose.stat().st_size < checkout.MOST_BYTES
    both = {name: stored(repo, (FILE, name * 600)) for name in (b"a", b"b")}
    commit = repo.commit_tree(by_git(repo, None, {b"zeros": zeros, **both}), [], "test\n")
    assert not check_out(repo, tmp_path, commit, [b"zeros"])
    monkeypatch.setattr(checkout, "MOST_TOGETHER", 1000)
    assert not check_out(repo, tmp_path, commit, [b"a", b"b"])
    assert list(tmp_path.iterdir()) == []
    assert check_out(repo, tmp_path, commit, [b"a"])
