"""Objects and refs written without git are what git itself would have written."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.contract.errors import BatonError
from baton.workspace.loose import write_object, write_ref
from workspace.conftest import OpenRepository
from workspace.person import Person

REF = "refs/runs/r1/tasks/t/1"


def test_an_object_has_the_name_and_content_that_git_gives_it(
    person: Person, open_repository: OpenRepository
) -> None:
    repo = open_repository(person)
    content = "naïve\n\0 bytes".encode()
    oid = write_object(repo.store, "blob", content, repo.site.object_format)
    assert repo.run(["hash-object", "--stdin"], input=content).stdout.decode().strip() == oid
    assert repo.run(["cat-file", "blob", oid]).stdout == content
    assert write_object(repo.store, "blob", content, repo.site.object_format) == oid


@pytest.mark.parametrize("left", [0, 5])
def test_an_object_of_which_a_loss_of_power_left_a_part_is_written_again(
    person: Person, open_repository: OpenRepository, left: int
) -> None:
    repo = open_repository(person)
    oid = write_object(repo.store, "blob", b"content", repo.site.object_format)
    path = repo.store / oid[:2] / oid[2:]
    whole = path.read_bytes()
    path.unlink()
    path.write_bytes(whole[:left])
    assert write_object(repo.store, "blob", b"content", repo.site.object_format) == oid
    assert repo.run(["cat-file", "blob", oid]).stdout == b"content"


def test_a_commit_is_sound_and_has_its_parents(person: Person, open_repository: OpenRepository) -> None:
    repo = open_repository(person)
    base = repo.snapshot(REF)
    commit = repo.commit_tree(base.tree, [base.commit, base.commit], "a line\n\nand another\n")
    shown = repo.run(["show", "-s", "--format=%P|%T|%an|%B", commit]).stdout.decode()
    assert shown.strip() == f"{base.commit} {base.commit}|{base.tree}|Baton|a line\n\nand another"
    assert repo.run(["fsck", "--no-dangling", commit], ok=(0,)).exit_code == 0


def test_refs_are_set_moved_and_told_like_those_of_git(
    person: Person, open_repository: OpenRepository
) -> None:
    repo = open_repository(person)
    first = repo.snapshot("refs/runs/r1/base").commit
    second = repo.commit_tree(repo.tree_of(first), [first], "m\n")
    for commit in (first, second):
        repo.set_ref(REF, commit)
        assert repo.resolve(REF) == commit
    repo.run(["pack-refs", "--all"])
    repo.set_ref(REF, first)
    assert repo.refs("refs/runs/r1") == {"refs/runs/r1/base": first, REF: first}


@pytest.mark.parametrize("name", ["refs/runs/r1", "refs/runs/r1/base/below"])
def test_a_name_in_the_way_of_another_is_refused(
    person: Person, open_repository: OpenRepository, name: str
) -> None:
    repo = open_repository(person)
    commit = repo.snapshot("refs/runs/r1/base").commit
    with pytest.raises(BatonError):
        repo.set_ref(name, commit)
    assert repo.resolve("refs/runs/r1/base") == commit


def test_a_ref_whose_lock_is_held_is_left_to_git(tmp_path: Path) -> None:
    (tmp_path / "refs" / "runs").mkdir(parents=True)
    (tmp_path / "refs" / "runs" / "a.lock").touch()
    assert not write_ref(tmp_path, "refs/runs/a", "0" * 40)
