"""Worktrees are made, cleaned for the next use and removed, whatever a worker left in them."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from baton.contract.errors import InvalidInput
from workspace.person import Person, on_disk

BASE = "refs/runs/r1/base"


@pytest.fixture
def repo(person, open_repository):
    return open_repository(person)


def test_many_are_made_at_once_and_none_disturbs_another(person, repo):
    commit = repo.snapshot(BASE).commit
    with ThreadPoolExecutor(max_workers=8) as pool:
        made = list(pool.map(lambda number: repo.add_worktree(f"r1-{number}", commit), range(8)))
    expected = on_disk(person.root)
    assert all(on_disk(worktree.root) == expected for worktree in made)
    assert repo.list_worktrees() == tuple(f"r1-{number}" for number in range(8))
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(repo.remove_worktree, made))
    assert repo.list_worktrees() == ()
    assert not any(worktree.root.exists() for worktree in made)


def test_what_a_worker_left_beside_its_worktree_is_gone_at_the_next_use(person, repo):
    commit = repo.snapshot(BASE).commit
    worktree = repo.add_worktree("r1-1", commit)
    beside = (worktree.slot, repo.path.parent)
    kept = [sorted(os.listdir(folder)) for folder in beside]
    for folder in beside:
        (folder / "note").write_text("for the next worker")
        (folder / "folder").mkdir(mode=0o500)
        (folder / "link").symlink_to(person.root)
    half_made = repo.path.parent / f".{repo.path.name}.x"
    half_made.mkdir()
    assert repo.add_worktree("r1-1", commit) == worktree
    assert half_made.exists()
    half_made.rmdir()
    assert [sorted(os.listdir(folder)) for folder in beside] == kept
    assert person.root.is_dir()


def test_reset_brings_back_the_commit_and_nothing_else(person, repo):
    commit = repo.snapshot(BASE).commit
    worktree = repo.add_worktree("r1-1", commit)
    hand = Person(worktree.root)
    hand.write("build/ignored", "x")
    hand.write("untracked", "x")
    Person.init(worktree.root / "nested").write("x", "1")
    (worktree.root / "src/a.py").unlink()
    hand.write("src/a.py/deep/er", "a folder in a file's place")
    shutil.rmtree(worktree.root / "bin")
    hand.link("bin", "/etc")
    os.chmod(worktree.root / "src/b.py", 0o600)
    os.mkfifo(worktree.root / "pipe")
    hand.write("half/.git/config", "not a repository")
    hand.write("odd/.GIT/config", "x")
    repo.reset_worktree(worktree, commit)
    assert on_disk(worktree.root) == on_disk(person.root)
    assert {entry.name for entry in worktree.root.iterdir()} == {
        entry.name for entry in person.root.iterdir()
    }


def test_reset_goes_from_one_commit_to_another(person, repo):
    first = repo.snapshot(BASE)
    before = on_disk(person.root)
    shutil.rmtree(person.root / "src")
    person.write("src", "a file")
    person.write("fresh/x", "1")
    second = repo.snapshot("refs/runs/r1/now")
    worktree = repo.add_worktree("r1-1", first.commit)
    repo.reset_worktree(worktree, second.commit)
    assert on_disk(worktree.root) == on_disk(person.root)
    repo.reset_worktree(worktree, first.commit)
    assert on_disk(worktree.root) == before


def test_a_file_made_to_look_unchanged_is_restored(person, repo):
    commit = repo.snapshot(BASE).commit
    worktree = repo.add_worktree("r1-1", commit)
    path = worktree.root / "src/a.py"
    facts = path.stat()
    path.write_text("a = 9\n")  # the same size
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    repo.reset_worktree(worktree, commit)
    assert path.read_text() == "a = 1\n"


def test_permissions_and_further_names_that_git_does_not_mind_are_gone_after_a_reset(person, repo):
    commit = repo.snapshot(BASE).commit
    worktree = repo.add_worktree("r1-1", commit)
    (worktree.root / "src/a.py").chmod(0o400)
    (worktree.root / "bin/run").chmod(0o4755)
    alias = worktree.slot.parent / "alias"
    os.link(worktree.root / "src/b.py", alias)
    repo.reset_worktree(worktree, commit)
    alias.write_text("by its other name\n")
    assert on_disk(worktree.root) == on_disk(person.root)
    modes = [(worktree.root / name).stat().st_mode & 0o7600 for name in ("src/a.py", "bin/run")]
    assert modes == [0o600, 0o600]
    alias.unlink()


def test_the_same_name_again_is_brought_to_the_commit(person, repo):
    first = repo.snapshot(BASE)
    worktree = repo.add_worktree("r1-1", first.commit)
    (worktree.root / "rest").write_text("x")
    person.write("later", "x")
    again = repo.add_worktree("r1-1", repo.snapshot(BASE).commit)
    assert again == worktree == repo.open_worktree("r1-1")
    assert on_disk(again.root) == on_disk(person.root)


def test_a_damaged_one_is_replaced(person, repo):
    commit = repo.snapshot(BASE).commit
    worktree = repo.add_worktree("r1-1", commit)
    worktree.index.write_bytes(b"DIRC damaged")
    again = repo.add_worktree("r1-1", commit)
    assert on_disk(again.root) == on_disk(person.root)


def test_half_made_and_half_removed_ones_are_made_anew(person, repo):
    commit = repo.snapshot(BASE).commit
    worktree = repo.add_worktree("r1-1", commit)
    shutil.rmtree(worktree.root)
    assert repo.open_worktree("r1-1") is None
    assert on_disk(repo.add_worktree("r1-1", commit).root) == on_disk(person.root)
    shutil.rmtree(worktree.admin)
    assert on_disk(repo.add_worktree("r1-1", commit).root) == on_disk(person.root)
    (worktree.admin / "index.lock").write_text("left by a killed git")
    assert on_disk(repo.add_worktree("r1-1", commit).root) == on_disk(person.root)
    repo.remove_worktree(worktree)
    repo.remove_worktree(worktree)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "x.lock", "-x", "n\nl"])
def test_names_that_could_lead_elsewhere_are_refused(repo, name):
    with pytest.raises(InvalidInput, match="cannot name a worktree"):
        repo.add_worktree(name, "HEAD")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_locked_folders_do_not_stop_a_reset_or_removal(person, repo):
    commit = repo.snapshot(BASE).commit
    worktree = repo.add_worktree("r1-1", commit)
    Person(worktree.root).write("locked/deep/file", "x")
    os.chmod(worktree.root / "locked/deep", 0o000)
    os.chmod(worktree.root / "locked", 0o500)
    os.chmod(worktree.root / "src", 0o500)
    repo.reset_worktree(worktree, commit)
    assert on_disk(worktree.root) == on_disk(person.root)
    os.chmod(worktree.root / "src", 0o000)
    repo.remove_worktree(worktree)
    assert not worktree.root.exists()
