"""Whatever tree a worker leaves, capture and checkout give it back exactly, and merging keeps both sides."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baton.ledger.state import StateFolder
from baton.workspace.git import Git
from baton.workspace.locate import locate
from baton.workspace.repository import PrivateRepository
from workspace.person import Person, on_disk

BASE = "refs/runs/r1/base"

NAMES = st.sampled_from(
    [
        b"a",
        b"b",
        b"A",
        b"dir",
        b"n\nl",
        b'q"',
        b"\xff",
        b"\\",
        b" ",
        b"-x",
        b"\xc3\xa9",
        b"e\xcc\x81",
        b":(x)",
    ]
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
LEAVES = st.one_of(
    st.tuples(st.sampled_from(["100644", "100755"]), st.binary(max_size=30)),
    st.tuples(st.just("120000"), st.sampled_from([b"a", b"../x", b"dir/b", b"/abs", b"\xff\n", b"."])),
)
TREES = st.dictionaries(PATHS, LEAVES, max_size=8)


def without_clashes(tree: dict) -> dict:
    """A path cannot be a file and a folder at once: the shorter one stays."""
    kept: dict = {}
    for path in sorted(tree):
        parents = {path.rsplit(b"/", number)[0] for number in range(1, path.count(b"/") + 1)}
        if not parents & kept.keys():
            kept[path] = tree[path]
    return kept


def lay_out(person: Person, tree: dict) -> None:
    for entry in person.root.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    for path, (mode, data) in tree.items():
        if mode == "120000":
            person.link(path, data)
        else:
            person.write(path, data, 0o755 if mode == "100755" else 0o644)


@pytest.fixture(scope="module")
def shop():
    """One repository for all examples: each starts from what the one before left in it."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(os.path.realpath(folder))
        person = Person.init(top / "project")
        person.write("a", "1")
        state = StateFolder.find({"BATON_STATE": str(top / "state")})
        git = Git.find()
        yield person, PrivateRepository.open(state, locate(person.root, git), git=git), top / "aside"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=TREES.map(without_clashes), after=TREES.map(without_clashes), now=TREES.map(without_clashes))
def test_snapshot_capture_checkout_and_merge_keep_every_byte(shop, before, after, now):
    person, repo, aside = shop
    lay_out(person, before)
    base = repo.snapshot(BASE)
    worktree = repo.add_worktree("r1-1", base.commit)
    assert on_disk(worktree.root) == before
    lay_out(Person(worktree.root), after)
    captured = repo.capture(worktree, base, "refs/runs/r1/tasks/t/1", aside)
    other = repo.add_worktree("r1-2", captured.commit)
    assert on_disk(other.root) == after
    named = {path for change in captured.changes for path in change.touched}
    assert named == {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    merged = repo.merge(base.commit, base.commit, captured.commit, "m", "refs/runs/r1/merge/1")
    assert merged.tree == captured.tree

    lay_out(person, now)
    present = repo.snapshot("refs/runs/r1/now")
    merged = repo.merge(base.commit, present.commit, captured.commit, "m", "refs/runs/r1/merge/2")
    if merged.commit is None:
        assert merged.conflicts
        return
    repo.reset_worktree(other, merged.commit)
    held = on_disk(other.root)
    for path in before.keys() | after.keys() | now.keys():
        old, theirs, ours = before.get(path), after.get(path), now.get(path)
        if theirs == old:
            assert held.get(path) == ours
        elif ours in (old, theirs):
            assert held.get(path) == theirs
