"""Every place where a repository's objects can be read from is known."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from baton.contract.errors import Unsupported
from baton.workspace.git import Git
from baton.workspace.locate import locate
from baton.workspace.stores import MAX_STORES, git_stores
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


def lender(tmp_path: Path) -> Path:
    person = Person.init(tmp_path / "lender")
    person.write("x", "x")
    person.commit()
    return person.root / ".git" / "objects"


def quoted(objects: Path, other: Path) -> None:
    octal = "".join(f"\\{byte:03o}" for byte in bytes(other))
    (objects / "info" / "alternates").write_text(f'"{octal}"\n')


def quoted_with_more_behind(objects: Path, other: Path) -> None:
    (objects / "info" / "alternates").write_text(f'"{objects}" {other}\n')


def whole_pack_folder(objects: Path, other: Path) -> None:
    shutil.rmtree(objects / "pack")
    (objects / "pack").symlink_to(other / "pack")


def one_pack(objects: Path, other: Path) -> None:
    (objects / "pack" / "pack-1.pack").symlink_to(other / "pack" / "pack-1.pack")


def one_fan_out_folder(objects: Path, other: Path) -> None:
    folder = next(other.glob("??"))
    (objects / folder.name).symlink_to(folder)


def one_loose_object(objects: Path, other: Path) -> None:
    loose = next(other.glob("??/*"))
    (objects / loose.parent.name).mkdir()
    (objects / loose.parent.name / loose.name).symlink_to(loose)


@pytest.mark.parametrize(
    "borrow",
    [quoted, quoted_with_more_behind, whole_pack_folder, one_pack, one_fan_out_folder, one_loose_object],
)
def test_objects_are_found_however_they_are_borrowed(
    tmp_path: Path, borrow: Callable[[Path, Path], None]
) -> None:
    other = lender(tmp_path)
    person = Person.init(tmp_path / "borrower")
    borrow(person.root / ".git" / "objects", other)
    stores = git_stores(locate(person.root, Git.find()))
    assert any(store.is_relative_to(other) for store in stores), stores


def test_more_lenders_than_are_followed_are_refused(tmp_path: Path) -> None:
    person = Person.init(tmp_path / "borrower")
    lenders = [tmp_path / str(number) for number in range(MAX_STORES)]
    (person.root / ".git" / "objects" / "info" / "alternates").write_text(
        "".join(f"{one}\n" for one in lenders)
    )
    with pytest.raises(Unsupported, match="more than 50 folders"):
        git_stores(locate(person.root, Git.find()))
