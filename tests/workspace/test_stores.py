"""Every place where a repository's objects can be read from is known."""

from __future__ import annotations

from pathlib import Path

from baton.workspace.git import Git
from baton.workspace.locate import locate
from baton.workspace.stores import git_stores
from workspace.person import Person


def test_a_repository_alone_is_its_git_directory(tmp_path: Path) -> None:
    person = Person.init(tmp_path / "a")
    assert git_stores(locate(person.root, Git.find())) == (person.root / ".git",)


def test_borrowed_objects_are_followed_however_far(tmp_path: Path) -> None:
    first = Person.init(tmp_path / "first")
    first.write("x", "x")
    first.commit()
    for source, name in (("first", "second"), ("second", "third")):
        first.git("clone", "-q", "--shared", str(tmp_path / source), str(tmp_path / name))
    stores = git_stores(locate(tmp_path / "third", Git.find()))
    assert set(stores) == {
        tmp_path / "third" / ".git",
        tmp_path / "second" / ".git" / "objects",
        tmp_path / "first" / ".git" / "objects",
    }


def test_a_linked_worktree_leads_to_the_common_directory(tmp_path: Path) -> None:
    main = Person.init(tmp_path / "main")
    main.commit()
    main.git("worktree", "add", "-q", str(tmp_path / "linked"))
    assert git_stores(locate(tmp_path / "linked", Git.find())) == (main.root / ".git",)


def test_a_plain_folder_has_none(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert git_stores(locate(tmp_path / "plain", Git.find())) == ()
