"""Snapshots of unusual repositories: subfolders, linked, shallow, partial and sparse ones, submodules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workspace.person import Person, footprint, on_disk

BASE = "refs/runs/r1/base"
TASK = "refs/runs/r1/tasks/t/1"


def clone(person: Person, to: Path, *options: str) -> Person:
    person.git("config", "uploadpack.allowFilter", "true")
    person.git("config", "uploadpack.allowAnySHA1InWant", "true")
    person.git("clone", "-q", *options, f"file://{person.root}", str(to))
    return Person(to)


def test_a_subfolder_workspace_snapshots_the_whole_repository_and_works_inside(
    person, open_repository, content
):
    person.write("src/new.py", "n")
    person.write("bin/other", "sibling")
    repo = open_repository(person.root / "src")
    taken = repo.snapshot(BASE)
    assert content(repo, taken.commit) == on_disk(person.root)
    worktree = repo.add_worktree("r1-1", taken.commit)
    assert worktree.cwd == worktree.root / "src"
    (worktree.cwd / "a.py").write_text("worker\n")
    (worktree.cwd / "b.py").rename(worktree.cwd / "c.py")
    (worktree.root / "bin/run").unlink()
    captured = repo.capture(worktree, taken, TASK, person.root.parent / "aside")
    assert {(change.path, change.old_path) for change in captured.changes} == {
        (b"a.py", None),
        (b"c.py", b"b.py"),
    }
    assert captured.outside == (b"bin/run",)
    assert b"bin/run" not in repo.diff(taken.commit, captured.commit)
    assert b"a/a.py" in repo.diff(taken.commit, captured.commit, [b"a.py"])


def test_a_file_moved_out_of_a_subfolder_workspace_is_a_deletion_inside_and_an_addition_outside(
    person, open_repository
):
    repo = open_repository(person.root / "src")
    taken = repo.snapshot(BASE)
    worktree = repo.add_worktree("r1-1", taken.commit)
    (worktree.cwd / "a.py").rename(worktree.root / "moved.py")
    captured = repo.capture(worktree, taken, TASK, person.root.parent / "aside")
    assert [(change.path, change.kind.value) for change in captured.changes] == [(b"a.py", "deleted")]
    assert captured.outside == (b"moved.py",)


def test_an_untracked_subfolder_workspace_exists_in_the_worktree(person, open_repository):
    (person.root / "fresh").mkdir()
    repo = open_repository(person.root / "fresh")
    worktree = repo.add_worktree("r1-1", repo.snapshot(BASE).commit)
    assert worktree.cwd.is_dir()


def test_a_linked_worktree_of_the_person(person, tmp_path, open_repository, content):
    person.git("worktree", "add", "-q", "-b", "topic", str(tmp_path / "linked"))
    linked = Person(tmp_path / "linked")
    linked.write("src/a.py", "in the linked one\n")
    linked.commit()
    linked.write("extra", "x")
    before = footprint(person.root)
    repo = open_repository(linked)
    taken = repo.snapshot(BASE, "r1")
    assert content(repo, taken.commit) == on_disk(linked.root)
    assert taken.head == linked.git("rev-parse", "HEAD").decode()
    assert footprint(person.root) == before


def test_a_shallow_clone(person, tmp_path, open_repository, content):
    person.write("src/a.py", "second\n")
    person.commit("second")
    shallow = clone(person, tmp_path / "shallow", "--depth=1")
    shallow.write("src/b.py", "edited\n")
    repo = open_repository(shallow)
    taken = repo.snapshot(BASE, "r1")
    assert content(repo, taken.commit) == on_disk(shallow.root)
    assert repo.run(["rev-list", "--count", taken.commit]).stdout.strip() == b"2"
    repo.run(["fsck", "--full"])
    worktree = repo.add_worktree("r1-1", taken.commit)
    (worktree.root / "w").write_text("w")
    captured = repo.capture(worktree, taken, TASK, tmp_path / "aside")
    shallow.write("now", "n")
    now = repo.snapshot("refs/runs/r1/now", "r1")
    merged = repo.merge(taken.commit, now.commit, captured.commit, "m", "refs/runs/r1/merge/1")
    assert {b"w", b"now"} <= content(repo, merged.commit).keys()
    shallow.git("fetch", "-q", str(repo.path), "refs/runs/r1/merge/1")


@pytest.mark.parametrize("filter", ["blob:none", "tree:0"])
def test_a_partial_clone_is_read_from_disk_and_never_fetches(
    filter, person, tmp_path, open_repository, content
):
    person.write("src/a.py", "second\n")
    person.commit("second")
    partial = clone(person, tmp_path / "partial", f"--filter={filter}")
    partial.git("config", "remote.origin.url", "file:///nonexistent/origin")
    partial.write("src/b.py", "edited\n")
    objects = partial.git("count-objects", "-v")
    repo = open_repository(partial)
    assert repo.site.partial
    for _ in range(2):
        taken = repo.snapshot(BASE, "r1")
    assert content(repo, taken.commit) == on_disk(partial.root)
    assert partial.git("count-objects", "-v") == objects
    worktree = repo.add_worktree("r1-1", taken.commit)
    assert on_disk(worktree.root) == on_disk(partial.root)


def test_a_file_whose_committed_blob_was_never_fetched_is_taken_from_disk(
    person, tmp_path, open_repository, content
):
    partial = clone(person, tmp_path / "partial", "--filter=blob:none", "--no-checkout")
    partial.git("config", "remote.origin.url", "file:///nonexistent/origin")
    partial.git("read-tree", "HEAD")
    partial.write("src/a.py", "a = 1\n")  # the same bytes as in HEAD, but the object is not here
    repo = open_repository(partial)
    taken = repo.snapshot(BASE)
    assert content(repo, taken.commit) == {b"src/a.py": ("100644", b"a = 1\n")}


def sparse(person: Person, tmp_path: Path, *options: str) -> Person:
    for number in range(3):
        person.write(f"far/f{number}", f"far {number}")
    person.commit("far")
    checkout = clone(person, tmp_path / "sparse", "--no-checkout", *options)
    checkout.git("sparse-checkout", "set", "src")
    checkout.git("checkout", "-q", "main")
    assert not (checkout.root / "far").exists()
    return checkout


def test_a_sparse_checkout_keeps_what_it_leaves_out(person, tmp_path, open_repository, content):
    checkout = sparse(person, tmp_path)
    checkout.write("src/a.py", "edited\n")
    repo = open_repository(checkout)
    for _ in range(2):
        taken = repo.snapshot(BASE, "r1")
    held = content(repo, taken.commit)
    assert held[b"far/f1"] == ("100644", b"far 1")
    assert held[b"src/a.py"][1] == b"edited\n"
    assert b"far/f1" in repo.absent(taken.commit)
    assert any("sparse" in note for note in taken.notes)
    worktree = repo.add_worktree("r1-1", taken.commit)
    assert on_disk(worktree.root) == on_disk(checkout.root)
    (worktree.root / "src/w.py").write_text("w")
    (worktree.root / "far").mkdir()
    (worktree.root / "far/f2").write_text("made by the worker")
    captured = repo.capture(worktree, taken, TASK, tmp_path / "aside")
    assert {change.path for change in captured.changes} == {b"src/w.py", b"far/f2"}
    assert repo.absent(captured.commit) == repo.absent(taken.commit) - {b"far/f2"}
    repo.reset_worktree(worktree, taken.commit)
    assert on_disk(worktree.root) == on_disk(checkout.root)
    repo.reset_worktree(worktree, captured.commit)
    assert (worktree.root / "far/f2").read_text() == "made by the worker"
    assert not (worktree.root / "far/f1").exists()


def test_a_sparse_index_and_a_partial_clone_together(person, tmp_path, open_repository):
    checkout = sparse(person, tmp_path, "--filter=blob:none")
    checkout.git("sparse-checkout", "set", "--cone", "--sparse-index", "src")
    checkout.git("config", "remote.origin.url", "file:///nonexistent/origin")
    repo = open_repository(checkout)
    taken = repo.snapshot(BASE, "r1")
    assert repo.changes(taken.head, taken.commit) == ()
    worktree = repo.add_worktree("r1-1", taken.commit)
    assert on_disk(worktree.root) == on_disk(checkout.root)
    (worktree.root / "src/a.py").write_text("worker\n")
    captured = repo.capture(worktree, taken, TASK, tmp_path / "aside")
    checkout.write("src/b.py", "person\n")
    now = repo.snapshot("refs/runs/r1/now", "r1")
    merged = repo.merge(taken.commit, now.commit, captured.commit, "m", "refs/runs/r1/merge/1")
    assert [change.path for change in repo.changes(taken.commit, merged.commit)] == [b"src/a.py", b"src/b.py"]
    repo.reset_worktree(worktree, merged.commit)
    assert (worktree.root / "src/b.py").read_text() == "person\n"


def with_submodule(person: Person, tmp_path: Path) -> str:
    library = Person.init(tmp_path / "library")
    library.write("lib.py", "lib")
    commit = library.commit()
    person.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.root), "sub/lib")
    person.commit("submodule")
    return commit


def test_submodules_are_pointers_and_can_be_linked_in(person, tmp_path, open_repository, content):
    commit = with_submodule(person, tmp_path)
    person.write("sub/lib/edited.py", "their edit inside")
    before = footprint(person.root)
    repo = open_repository(person)
    taken = repo.snapshot(BASE, "r1")
    assert taken.submodules == (b"sub/lib",) == repo.submodules(taken.commit)
    assert content(repo, taken.commit)[b"sub/lib"] == ("160000", commit.encode())
    worktree = repo.add_worktree("r1-1", taken.commit)
    assert list((worktree.root / "sub/lib").iterdir()) == []
    made = repo.link_submodules(worktree, taken.submodules)
    assert made == (worktree.root / "sub/lib",)
    assert (worktree.root / "sub/lib/lib.py").read_text() == "lib"
    captured = repo.capture(worktree, taken, TASK, tmp_path / "aside")
    assert (captured.changes, captured.nested) == ((), ())
    repo.reset_worktree(worktree, taken.commit)
    assert (person.root / "sub/lib/lib.py").exists()
    assert footprint(person.root) == before


def test_what_a_worker_puts_into_an_empty_submodule_is_listed_and_kept(person, tmp_path, open_repository):
    with_submodule(person, tmp_path)
    repo = open_repository(person)
    taken = repo.snapshot(BASE)
    worktree = repo.add_worktree("r1-1", taken.commit)
    (worktree.root / "sub/lib/made.py").write_text("by the worker")
    captured = repo.capture(worktree, taken, TASK, tmp_path / "aside")
    assert captured.nested == (b"sub/lib",)
    assert (tmp_path / "aside/sub/lib/made.py").read_text() == "by the worker"


def test_a_submodule_replaced_by_a_worker_is_a_change_of_type(person, tmp_path, open_repository):
    with_submodule(person, tmp_path)
    repo = open_repository(person)
    taken = repo.snapshot(BASE)
    worktree = repo.add_worktree("r1-1", taken.commit)
    (worktree.root / "sub/lib").rmdir()
    (worktree.root / "sub/lib").write_text("a file")
    captured = repo.capture(worktree, taken, TASK, tmp_path / "aside")
    assert [(change.path, change.kind.value) for change in captured.changes] == [(b"sub/lib", "type")]


def test_a_submodule_without_checkout_is_a_pointer_too(person, tmp_path, open_repository, content):
    with_submodule(person, tmp_path)
    copy = clone(person, tmp_path / "copy")
    assert os.listdir(copy.root / "sub/lib") == []
    repo = open_repository(copy)
    taken = repo.snapshot(BASE)
    assert repo.changes(taken.head, taken.commit) == ()
    assert taken.submodules == (b"sub/lib",)


def test_a_repository_that_borrows_objects_itself(person, tmp_path, open_repository, content):
    person.git("clone", "-q", "--shared", str(person.root), str(tmp_path / "shared"))
    shared = Person(tmp_path / "shared")
    shared.write("src/a.py", "edited\n")
    repo = open_repository(shared)
    assert content(repo, repo.snapshot(BASE, "r1").commit) == on_disk(shared.root)


def test_two_workspaces_of_one_repository_share_a_private_repository(person, open_repository):
    top, sub = open_repository(person), open_repository(person.root / "src")
    assert top.path == sub.path
    assert top.snapshot(BASE).tree == sub.snapshot(BASE).tree


def test_paths_with_colons_quotes_and_line_feeds_can_be_borrowed_from(tmp_path, open_repository, content):
    person = Person.init(tmp_path / 'a:b "c"\nd é')
    person.write("x", "1")
    person.commit()
    repo = open_repository(person)
    taken = repo.snapshot(BASE, "r1")
    assert content(repo, taken.commit) == on_disk(person.root)
    # Plain git on the private repository sees the borrowed objects as well.
    Person(repo.path).git("--git-dir", str(repo.path), "rev-list", "--objects", "--all")
