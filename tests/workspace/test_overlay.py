"""Results that touch different paths merge at once, to the very tree that merging them singly gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baton.workspace.overlay import merge_disjoint, parse_many
from baton.workspace.repository import PrivateRepository
from workspace.conftest import OpenRepository
from workspace.person import Person

MERGE = "refs/runs/r1/merge/1"

Edit = Mapping[bytes, bytes | None]

PATHS = [b"a", b"b/c", b"b/d", b"e/f/g", b"h\xff", b"new", b"b/new", b"e/f"]


@pytest.fixture
def repo(tmp_path, open_repository: OpenRepository) -> PrivateRepository:
    person = Person.init(tmp_path / "p")
    for path in PATHS[:5]:
        person.write(path, path)
    person.commit("base")
    return open_repository(person)


def edited(repo: PrivateRepository, base: str, edit: Edit) -> str:
    """A commit on `base` with these contents, None for a path that is taken away."""
    index = repo.path / "indexes" / "hand"
    repo.run(["read-tree", base], index=index)
    for path, content in edit.items():
        oid, mode = repo.zero, b"0"
        if content is not None:
            oid = repo.run(["hash-object", "-w", "--stdin"], input=content).stdout.decode().strip()
            mode = b"100644"
        line = b"%s %s\t%s\0" % (mode, oid.encode(), path)
        repo.run(["update-index", "-z", "--add", "--replace", "--index-info"], index=index, input=line)
    tree = repo.run(["write-tree"], index=index).stdout.decode().strip()
    return repo.commit_tree(tree, [base], "edit\n")


EDITS = st.dictionaries(st.sampled_from(PATHS), st.sampled_from([b"1", b"2", None]), max_size=3)


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EDITS, st.lists(EDITS, min_size=2, max_size=4))
def test_the_tree_is_that_of_merging_one_after_the_other(
    repo: PrivateRepository, person_edit: Edit, edits: list[Edit]
) -> None:
    base = repo.snapshot("refs/runs/r1/base")
    ours = edited(repo, base.commit, person_edit)
    theirs = [edited(repo, base.commit, edit) for edit in edits]
    laid = merge_disjoint(repo, base.tree, ours, repo.tree_of(ours), theirs, "m\n", MERGE)
    if laid is None:
        return
    at = ours
    for number in laid.taken:
        merged = repo.merge(base.commit, at, theirs[number], "m\n", "refs/runs/r1/merge/2")
        assert merged.commit is not None
        at = merged.commit
    assert laid.tree == repo.tree_of(at)
    assert repo.resolve(MERGE) == laid.commit


def test_what_shares_a_path_is_left_for_the_merge_of_contents(repo: PrivateRepository) -> None:
    base = repo.snapshot("refs/runs/r1/base")
    ours = edited(repo, base.commit, {b"h\xff": b"the person's"})
    edits: list[Edit] = [
        {b"a": b"1"},
        {b"a": b"2"},
        {b"h\xff": b"3"},
        {b"b/d": None},
        {b"b/d/deep": b"in its place"},
    ]
    theirs = [edited(repo, base.commit, edit) for edit in edits]
    laid = merge_disjoint(repo, base.tree, ours, repo.tree_of(ours), theirs, "m\n", MERGE)
    assert laid is not None and laid.taken == (0, 3)
    parents = repo.run(["rev-parse", f"{laid.commit}^@"]).stdout.decode().split()
    assert parents == [ours, theirs[0], theirs[3]]


def test_sides_without_changes_are_told_apart(content: Callable[..., object]) -> None:
    line = b"1111 2222\n"
    change = b":100644 000000 %s %s D\0:odd\nname\0" % (b"a" * 40, b"0" * 40)
    sides = parse_many(line + line + change + line)
    assert sides == [{}, {b":odd\nname": (0, "0" * 40)}, {}]
