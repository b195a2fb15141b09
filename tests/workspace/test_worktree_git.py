"""What git shows in a worktree that is handed out: the person's history and this tree, nobody's results."""

from __future__ import annotations

import subprocess

import pytest

from baton.workspace.worktree_git import give_git
from workspace.person import Person

BASE = "refs/runs/r1/base"


@pytest.fixture
def repo(person, open_repository):
    return open_repository(person)


def given(repo, name="r1-1"):
    """A worktree of the workspace as it is now, with its git, as a hand that works in it."""
    taken = repo.snapshot(BASE, "r1")
    worktree = repo.add_worktree(name, taken.commit)
    return worktree, give_git(repo, worktree, taken.commit, taken.head)


def test_history_status_and_blame_are_those_of_the_person(person, repo):
    person.write("src/a.py", "a = 2\n")
    person.write("notes", "untracked\n")
    worktree, folder = given(repo)
    hand = Person(worktree.root)
    assert folder == worktree.slot / "git"
    assert hand.git("status", "--porcelain") == b""
    assert hand.git("log", "--format=%s", "HEAD~1") == b"base"
    assert hand.git("show", "HEAD:src/a.py") == b"a = 2"
    assert hand.git("show", "HEAD~1:src/a.py") == b"a = 1"
    hand.write("src/a.py", "a = 3\n")
    assert hand.git("diff", "--name-only") == b"src/a.py"


def test_results_of_other_runs_cannot_be_read(person, repo):
    first, _ = given(repo)
    (first.root / "secret").write_text("of another run\n")
    result = repo.capture(first, repo.resolve(BASE), "refs/runs/r0/tasks/t1/1", first.slot / "aside")
    second, _ = given(repo, "r1-2")
    hand = Person(second.root)
    blob = repo.run(["rev-parse", f"{result.commit}:secret"]).stdout.decode().strip()
    for name in (result.commit, result.tree, blob):
        assert hand.git("cat-file", "-t", name, ok=False) == b""
    assert b"refs/runs" not in hand.git("for-each-ref")


def test_it_stays_whole_when_the_person_rewrites_history_and_collects(person, repo):
    person.write("src/a.py", "a = 2\n")
    worktree, _ = given(repo)
    person.git("commit", "-q", "--amend", "-m", "other", "-a")
    person.git("reflog", "expire", "--expire=now", "--all")
    person.git("gc", "-q", "--prune=now")
    hand = Person(worktree.root)
    assert hand.git("fsck", "--no-dangling") == b""
    assert hand.git("log", "--format=%s", "HEAD~1") == b"base"


def test_there_is_none_for_a_plain_folder(tmp_path, open_repository):
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a").write_text("a")
    worktree, folder = given(open_repository(plain))
    assert folder is None
    done = subprocess.run(["git", "status"], cwd=worktree.root, capture_output=True, check=False)
    assert done.returncode != 0


def test_under_an_unborn_head_it_has_all_but_what_is_large(tmp_path, open_repository):
    unborn = Person.init(tmp_path / "unborn")
    unborn.write("a", "1\n")
    unborn.write("large", bytes(1024 * 1024))
    worktree, _ = given(open_repository(unborn))
    hand = Person(worktree.root)
    assert hand.git("status", "--porcelain") == b""
    assert hand.git("ls-files") == b"a\nlarge"
    hand.write("a", "2\n")
    assert b"+2" in hand.git("diff")
    assert hand.git("cat-file", "-t", "HEAD:large", ok=False) == b""


@pytest.mark.parametrize("how", [["--depth=1"], ["--filter=blob:none"], ["--filter=tree:0"]])
def test_a_clone_that_lacks_history_has_one_as_well(person, tmp_path, open_repository, how):
    person.write("src/a.py", "a = 2\n")
    person.commit("second")
    person.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    person.git("clone", "-q", *how, f"file://{person.root}", str(clone))
    (clone / "src" / "a.py").write_text("a = 3\n")
    worktree, _ = given(open_repository(clone))
    hand = Person(worktree.root)
    assert hand.git("status", "--porcelain") == b""
    assert hand.git("show", "HEAD:src/a.py") == b"a = 3"


@pytest.mark.parametrize("how", ["whole", "unchanged", "sparse", "shallow", "unborn"])
def test_status_works_where_the_objects_of_the_person_cannot_be_read(person, tmp_path, open_repository, how):
    # Of a link in a folder just written git reads the object, which is not there.
    person.git("rm", "-q", "link")
    person.write("other/o", "o\n")
    person.commit("second")
    root = person.root
    if how == "sparse":
        person.git("sparse-checkout", "set", "src")
    elif how == "shallow":
        root = tmp_path / "clone"
        person.git("clone", "-q", "--depth=1", f"file://{person.root}", str(root))
    elif how == "unborn":
        person.git("checkout", "-q", "--orphan", "new")
    repo = open_repository(root)
    taken = repo.snapshot(BASE, "r1")
    first = repo.add_worktree("r1-1", taken.commit)
    if how != "unchanged":
        (first.root / "src" / "a.py").write_text("a = 3\n")
    made = repo.capture(first, taken.commit, "refs/runs/r1/tasks/t1/1", first.slot / "aside").commit
    worktree = repo.add_worktree("r1-2", made)
    give_git(repo, worktree, made, taken.head)
    (root / ".git" / "objects").rename(tmp_path / "out of sight")
    hand = Person(worktree.root)
    assert hand.git("status", "--porcelain") == b""
    assert b"src/a.py" in hand.git("ls-files").splitlines()


def test_capture_does_not_look_at_it(person, repo):
    worktree, _ = given(repo)
    hand = Person(worktree.root)
    hand.write("src/a.py", "a = 3\n")
    hand.git("add", "-A")
    hand.git("commit", "-qm", "by the worker")
    (worktree.slot / "git" / "config").write_text("[core]\n\tfsmonitor = /bin/false\n\tbare = true\n")
    captured = repo.capture(worktree, repo.resolve(BASE), "refs/runs/r1/tasks/t1/1", worktree.slot / "aside")
    assert [change.path for change in captured.changes] == [b"src/a.py"]


def test_the_next_use_begins_with_a_new_one(person, repo):
    worktree, folder = given(repo)
    (folder / "hooks").mkdir()
    (folder / "hooks" / "post-checkout").write_text("planted")
    again, fresh = given(repo)
    assert again.root == worktree.root
    assert not (fresh / "hooks").exists()


def test_a_repository_of_sha256(tmp_path, open_repository):
    person = Person.init(tmp_path / "project", "--object-format=sha256")
    person.write("a", "1\n")
    person.commit("base")
    person.write("a", "2\n")
    worktree, _ = given(open_repository(person))
    hand = Person(worktree.root)
    assert hand.git("status", "--porcelain") == b""
    assert hand.git("log", "--format=%s", "HEAD~1") == b"base"
