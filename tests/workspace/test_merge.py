"""A result is carried onto the workspace as it is now, or every conflict is named."""

from __future__ import annotations

import pytest

from baton.workspace.merge import parse_merge
from workspace.person import Person

BASE = "refs/runs/r1/base"
TASK = "refs/runs/r1/tasks/t/1"
RESULT = "refs/runs/r1/merge/1"


@pytest.fixture
def merging(person, open_repository, tmp_path, content):
    """Let a worker and the person change things at the same time, and merge."""
    person.write("long.txt", "".join(f"line {number}\n" for number in range(40)))
    person.commit("long")

    class Merging:
        repo = open_repository(person)

        def __init__(self) -> None:
            self.base = self.repo.snapshot(BASE, "r1")
            self.worktree = self.repo.add_worktree("r1-1", self.base.commit)
            self.worker = Person(self.worktree.root)

        def merge(self):
            self.captured = self.repo.capture(self.worktree, self.base, TASK, tmp_path / "aside")
            self.now = self.repo.snapshot("refs/runs/r1/now", "r1")
            return self.repo.merge(self.base.commit, self.now.commit, self.captured.commit, "merge\n", RESULT)

        def held(self, merged):
            return content(self.repo, merged.commit)

    return Merging()


def edited(person: Person, old: str, new: str) -> None:
    path = person.root / "long.txt"
    path.write_text(path.read_text().replace(old, new))


def test_both_sides_of_one_file_are_joined(person, merging):
    edited(merging.worker, "line 3\n", "worker\n")
    edited(person, "line 30\n", "person\n")
    person.write("src/a.py", "the person's\n")
    merged = merging.merge()
    text = merging.held(merged)[b"long.txt"][1]
    assert b"worker\n" in text and b"person\n" in text
    assert merging.held(merged)[b"src/a.py"][1] == b"the person's\n"
    parents = merging.repo.run(["rev-list", "--parents", "-n1", merged.commit]).stdout.decode().split()[1:]
    assert parents == [merging.now.commit, merging.captured.commit]
    assert merging.repo.resolve(RESULT) == merged.commit
    changed = merging.repo.changes(merging.now.commit, merged.commit)
    assert [change.path for change in changed] == [b"long.txt"]


def test_an_unmoved_workspace_takes_exactly_the_captured_tree(merging):
    merging.worker.write("src/new", "n")
    merged = merging.merge()
    assert merged.tree == merging.captured.tree


def test_the_base_is_the_snapshot_even_when_the_person_committed_meanwhile(person, merging):
    edited(merging.worker, "line 3\n", "worker\n")
    edited(person, "line 30\n", "person\n")
    person.commit("meanwhile")
    person.git("commit", "-q", "--amend", "-m", "again")
    assert b"worker\n" in merging.held(merging.merge())[b"long.txt"][1]


def test_conflicts_are_named_with_their_kind_and_nothing_is_recorded(person, merging):
    edited(merging.worker, "line 3\n", "worker\n")
    edited(person, "line 3\n", "person\n")
    (merging.worker.root / "src/a.py").unlink()
    person.write("src/a.py", "edited\n")
    merging.worker.write("both\nnew", "w")
    person.write("both\nnew", "p")
    merging.worker.write("fold", "a file")
    person.write("fold/er", "a folder")
    merged = merging.merge()
    assert merged.commit is None and merged.tree is None
    found = {conflict.path: conflict.detail for conflict in merged.conflicts}
    assert found[b"long.txt"] == "contents"
    assert found[b"src/a.py"] == "modify/delete"
    assert found[b"both\nnew"] == "add/add"
    assert any(path.startswith(b"fold") and "directory" in detail for path, detail in found.items())
    assert merging.repo.resolve(RESULT) is None
    assert merging.repo.resolve(TASK) == merging.captured.commit


def test_a_binary_conflict_is_a_conflict(person, merging):
    merging.worker.write("bin/run", b"\0worker")
    person.write("bin/run", b"\0person")
    assert [conflict.path for conflict in merging.merge().conflicts] == [b"bin/run"]


def test_the_persons_edit_follows_a_file_that_the_worker_renamed(person, merging):
    (merging.worker.root / "long.txt").rename(merging.worker.root / "renamed.txt")
    edited(person, "line 3\n", "person\n")
    held = merging.held(merging.merge())
    assert b"long.txt" not in held
    assert b"person\n" in held[b"renamed.txt"][1]


def test_work_never_lands_on_a_path_that_its_author_did_not_touch(person, merging):
    edited(merging.worker, "line 3\n", "worker\n")
    person.git("mv", "long.txt", "protected.txt")
    merged = merging.merge()
    assert merged.commit is None
    assert [(c.path, c.detail) for c in merged.conflicts] == [(b"long.txt", "modify/rename")]


def test_a_new_file_in_a_folder_that_the_person_renamed_stays_where_it_was_made(person, merging):
    merging.worker.write("src/new.py", "n")
    person.git("mv", "src", "lib")
    held = merging.held(merging.merge())
    assert b"src/new.py" in held and b"lib/new.py" not in held and b"lib/a.py" in held


def test_modes_links_and_deletions_are_carried(person, merging):
    (merging.worker.root / "src/b.py").chmod(0o755)
    (merging.worker.root / "link").unlink()
    merging.worker.link("link", "src/b.py")
    (merging.worker.root / "bin/run").unlink()
    person.write("other", "x")
    held = merging.held(merging.merge())
    assert held[b"src/b.py"][0] == "100755"
    assert held[b"link"] == ("120000", b"src/b.py")
    assert b"bin/run" not in held and b"other" in held


def test_attributes_of_the_tree_run_no_driver(person, merging, tmp_path):
    person.git("config", "merge.evil.driver", f"touch {tmp_path}/ran")
    merging.worker.write(".gitattributes", "* merge=evil diff=evil\n")
    person.write(".gitattributes", "*.txt merge=evil\n")
    edited(merging.worker, "line 3\n", "worker\n")
    edited(person, "line 30\n", "person\n")
    merging.merge()
    assert not (tmp_path / "ran").exists()


def test_several_results_are_joined_one_after_the_other(person, merging, content):
    repo = merging.repo
    merging.worker.write("one", "1")
    first = merging.merge()
    repo.reset_worktree(merging.worktree, merging.base.commit)
    merging.worker.write("two", "2")
    second = repo.capture(
        merging.worktree, merging.base, "refs/runs/r1/tasks/u/1", person.root.parent / "aside"
    )
    both = repo.merge(merging.base.commit, first.commit, second.commit, "second\n", "refs/runs/r1/merge/2")
    assert {b"one", b"two"} <= content(repo, both.commit).keys()
    assert repo.refs("refs/runs/r1") == {
        "refs/runs/r1/base": merging.base.commit,
        "refs/runs/r1/now": merging.now.commit,
        "refs/runs/r1/tasks/t/1": merging.captured.commit,
        "refs/runs/r1/tasks/u/1": second.commit,
        "refs/runs/r1/merge/1": first.commit,
        "refs/runs/r1/merge/2": both.commit,
    }


def test_a_clean_answer_without_messages_is_read():
    assert parse_merge(b"abc\0") == ("abc", ())
    assert parse_merge(b"abc\0\0") == ("abc", ())
