"""Dependency folders reach a worktree as links or copies, never into a result, and never writable from it."""

from __future__ import annotations

import os

import pytest

from baton.workspace.dependencies import may_be_linked
from workspace.person import Person, footprint, on_disk

BASE = "refs/runs/r1/base"
FOLDERS = ["node_modules", ".venv"]


@pytest.fixture
def project(person) -> Person:
    person.write(".gitignore", "node_modules\n.venv/\nbuild/\n*.log\n")
    person.commit("ignore")
    person.write("node_modules/dep/index.js", "dep")
    person.write("packages/one/node_modules/inner/x.js", "inner")
    person.write("packages/one/main.js", "main")
    person.write(".venv/bin/python", "#!x", 0o755)
    person.link(".venv/bin/python3", "python")
    return person


def test_links_lead_to_the_persons_folders_at_every_depth(project, open_repository):
    repo = open_repository(project)
    worktree = repo.add_worktree("r1-1", repo.snapshot(BASE).commit)
    made = repo.link_dependencies(worktree, FOLDERS, "link")
    relative = sorted(str(path.relative_to(worktree.root)) for path in made)
    assert relative == [".venv", "node_modules", "packages/one/node_modules"]
    assert os.readlink(worktree.root / "node_modules") == str(project.root / "node_modules")
    assert (worktree.root / "packages/one/node_modules/inner/x.js").read_text() == "inner"


def test_where_a_link_may_be_is_told_by_what_was_made_and_what_is_tracked(project, open_repository):
    repo = open_repository(project)
    project.link("tools/node_modules", "../elsewhere")
    project.git("add", "-f", "tools/node_modules")
    project.write("my_node_modules", "another name")
    worktree = repo.add_worktree("r1-1", repo.snapshot(BASE).commit)
    made = repo.link_dependencies(worktree, FOLDERS, "link")
    found = may_be_linked(repo, worktree, worktree.head, made, "node_modules")
    relative = [str(path.relative_to(worktree.root)) for path in found]
    assert relative == ["node_modules", "packages/one/node_modules", "tools/node_modules"]
    assert all(path.is_symlink() for path in found)


def test_links_survive_no_reset_and_nothing_behind_them_is_touched(project, open_repository):
    repo = open_repository(project)
    taken = repo.snapshot(BASE)
    before = footprint(project.root)
    worktree = repo.add_worktree("r1-1", taken.commit)
    repo.link_dependencies(worktree, FOLDERS, "link")
    captured = repo.capture(worktree, taken, "refs/runs/r1/tasks/t/1", project.root.parent / "aside")
    assert (captured.changes, captured.ignored, captured.leaving_links) == ((), (), ())
    repo.reset_worktree(worktree, taken.commit)
    assert not os.path.lexists(worktree.root / "node_modules")
    repo.link_dependencies(worktree, FOLDERS, "link")
    repo.remove_worktree(worktree)
    assert footprint(project.root) == before


def test_copies_are_the_workers_own(project, open_repository):
    repo = open_repository(project)
    taken = repo.snapshot(BASE)
    worktree = repo.add_worktree("r1-1", taken.commit)
    repo.link_dependencies(worktree, FOLDERS, "copy")
    copied = {path: state for path, state in on_disk(worktree.root).items() if b".venv/" in path}
    assert copied == {path: state for path, state in on_disk(project.root).items() if b".venv/" in path}
    (worktree.root / "node_modules/dep/index.js").write_text("changed by a worker")
    assert (project.root / "node_modules/dep/index.js").read_text() == "dep"
    captured = repo.capture(worktree, taken, "refs/runs/r1/tasks/t/1", project.root.parent / "aside")
    assert (captured.changes, captured.ignored) == ((), ())


def test_a_tracked_folder_of_that_name_is_left_as_it_is(person, open_repository):
    person.write("node_modules/vendored.js", "tracked")
    person.commit("vendored")
    repo = open_repository(person)
    worktree = repo.add_worktree("r1-1", repo.snapshot(BASE).commit)
    assert repo.link_dependencies(worktree, FOLDERS, "link") == ()
    assert (worktree.root / "node_modules/vendored.js").is_file()


def test_a_folder_that_is_itself_a_link_is_followed_to_its_target(person, tmp_path, open_repository):
    person.write(".gitignore", "node_modules\n")
    (tmp_path / "store").mkdir()
    person.link("node_modules", str(tmp_path / "store"))
    repo = open_repository(person)
    worktree = repo.add_worktree("r1-1", repo.snapshot(BASE).commit)
    repo.link_dependencies(worktree, FOLDERS, "link")
    assert os.readlink(worktree.root / "node_modules") == str(tmp_path / "store")


def test_none_means_none(project, open_repository):
    repo = open_repository(project)
    worktree = repo.add_worktree("r1-1", repo.snapshot(BASE).commit)
    assert repo.link_dependencies(worktree, FOLDERS, "none") == ()
    assert not os.path.lexists(worktree.root / "node_modules")


def test_plain_folder(tmp_path, open_repository):
    folder = Person(tmp_path / "plain")
    folder.write("main.js", "m")
    folder.write(".gitignore", "node_modules/\n")
    folder.write("node_modules/d.js", "d")
    repo = open_repository(folder.root)
    worktree = repo.add_worktree("r1-1", repo.snapshot(BASE).commit)
    assert repo.link_dependencies(worktree, FOLDERS, "link") == (worktree.root / "node_modules",)


def test_a_parent_that_the_worktree_replaced_by_a_link_is_not_entered(project, tmp_path, open_repository):
    repo = open_repository(project)
    worktree = repo.add_worktree("r1-1", repo.snapshot(BASE).commit)
    (tmp_path / "elsewhere").mkdir()
    Person(worktree.root).git("rm", "-rq", "--cached", "packages", ok=False)
    os.rename(worktree.root / "packages/one", worktree.root / "packages/moved")
    os.symlink(tmp_path / "elsewhere", worktree.root / "packages/one")
    repo.link_dependencies(worktree, FOLDERS, "link")
    assert list((tmp_path / "elsewhere").iterdir()) == []
