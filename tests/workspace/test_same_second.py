"""A change that keeps a file's size and falls into the second in which git last looked is seen all the same.

Git's index keeps time stamps in seconds. Each test acts within one second and looks again in a later one,
with something else changed, so that the index is written anew in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from workspace.conftest import OpenRepository
from workspace.person import Person

BASE = "refs/runs/r1/base"
TRIES = 20


def within_one_second(act: Callable[[], object], then: Callable[[], object]) -> None:
    """Do both in the same second of the clock, trying again where it turns in between."""
    for _ in range(TRIES):
        _await_next_second()
        began = int(time.time())
        act()
        then()
        if int(time.time()) == began:
            _await_next_second()
            return
    pytest.fail("the two never fell into one second")


def _await_next_second() -> None:
    now = int(time.time())
    while int(time.time()) == now:
        pass


def test_a_captured_change(person: Person, open_repository: OpenRepository, tmp_path: Path) -> None:
    repo = open_repository(person)
    base = repo.snapshot(BASE)
    worktree = repo.add_worktree("r1-1", base.commit)

    def afresh() -> None:
        (worktree.root / "src/a.py").unlink()
        repo.reset_worktree(worktree, base.commit)

    within_one_second(afresh, lambda: (worktree.root / "src/a.py").write_text("a = 2\n"))
    (worktree.root / "bin/run").unlink()
    captured = repo.capture(worktree, base, "refs/runs/r1/tasks/t/1", tmp_path / "aside")
    assert {change.path for change in captured.changes} == {b"bin/run", b"src/a.py"}


def test_a_worktree_that_is_used_again(person: Person, open_repository: OpenRepository) -> None:
    repo = open_repository(person)
    old = repo.snapshot(BASE).commit
    person.write("src/b.py", "b = 2\n")
    new = repo.snapshot(BASE).commit
    worktree = repo.add_worktree("r1-1", old)

    def afresh() -> None:
        (worktree.root / "src/a.py").unlink()
        repo.reset_worktree(worktree, old)

    within_one_second(afresh, lambda: (worktree.root / "src/a.py").write_text("a = 9\n"))
    repo.reset_worktree(worktree, new)
    assert (worktree.root / "src/a.py").read_text() == "a = 1\n"
    assert (worktree.root / "src/b.py").read_text() == "b = 2\n"


def test_an_edit_of_the_person(
    person: Person, open_repository: OpenRepository, content: Callable[..., object]
) -> None:
    repo = open_repository(person)

    def afresh() -> None:
        (person.root / "src/a.py").write_text("a = 1\n")
        repo.snapshot(BASE)

    within_one_second(afresh, lambda: (person.root / "src/a.py").write_text("a = 2\n"))
    (person.root / "bin/run").unlink()
    kept = content(repo, repo.snapshot(BASE).commit)
    assert kept[b"src/a.py"] == ("100644", b"a = 2\n")  # type: ignore[index]
    assert b"bin/run" not in kept  # type: ignore[operator]
