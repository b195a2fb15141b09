"""What no run needs any more is given back, and nothing else."""

from __future__ import annotations

from baton.workspace.collect import collect
from workspace.person import on_disk


def loose(repo) -> int:
    counted = repo.run(["count-objects"], borrow=False).stdout
    return int(counted.split()[0])


def test_a_forgotten_run_leaves_no_ref_no_pin_and_no_object(person, open_repository):
    person.write("src/a.py", "a = 2\n")
    repo = open_repository(person)
    repo.snapshot("refs/runs/r1/base", "r1")
    assert loose(repo) > 0
    repo.forget_run("r1")
    assert repo.refs("refs/runs") == {}
    assert person.git("for-each-ref", "refs/baton") == b""
    collect(repo, expire="now")
    assert loose(repo) == 0
    repo.forget_run("r1")


def test_what_another_run_or_a_worktree_needs_stays(person, open_repository, content):
    person.write("src/a.py", "a = 2\n")
    repo = open_repository(person)
    first = repo.snapshot("refs/runs/r1/base", "r1")
    worktree = repo.add_worktree("r1-1", first.commit)
    person.write("src/b.py", "b = 2\n")
    second = repo.snapshot("refs/runs/r2/base", "r2")
    held = content(repo, second.commit)
    repo.forget_run("r1")
    collect(repo, expire="now")
    assert content(repo, second.commit) == held
    assert on_disk(worktree.root)[b"src/a.py"][1] == b"a = 2\n"
    repo.reset_worktree(worktree, first.commit)
    assert repo.snapshot("refs/runs/r3/base", "r3").tree == second.tree


def test_young_objects_are_left_alone(person, open_repository):
    repo = open_repository(person)
    repo.run(["hash-object", "-w", "--stdin"], input=b"being captured", borrow=False)
    repo.collect()
    assert loose(repo) == 1


def test_results_of_a_repository_that_is_gone_can_be_forgotten(person, open_repository):
    repo = open_repository(person)
    repo.snapshot("refs/runs/r1/base", "r1")
    person.root.rename(person.root.with_name("moved"))
    repo.forget_run("r1")
    assert repo.refs("refs/runs") == {}
