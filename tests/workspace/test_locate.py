"""Every shape of workspace is recognised, or refused with one line that says what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from baton.contract.errors import InvalidInput, Unsupported
from baton.workspace.git import Git
from baton.workspace.locate import locate
from workspace.person import Person


def test_repository_subfolder_and_link_lead_to_the_same_root(person, tmp_path):
    git = Git.find()
    (tmp_path / "alias").symlink_to(person.root / "src")
    top, sub, alias = (locate(path, git) for path in (person.root, person.root / "src", tmp_path / "alias"))
    assert (top.root, top.prefix, top.kind) == (person.root, b"", "git")
    assert (sub.root, sub.prefix) == (person.root, b"src/")
    assert (alias.workspace, alias.prefix) == (person.root / "src", b"src/")
    assert top.key == sub.key == alias.key
    assert top.head == person.git("rev-parse", "HEAD").decode()


def test_linked_worktree_shares_the_common_directory_and_has_its_own_key(person, tmp_path):
    person.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    linked, main = locate(tmp_path / "linked", Git.find()), locate(person.root, Git.find())
    assert linked.common_dir == main.common_dir == person.root / ".git"
    assert linked.git_dir != main.git_dir
    assert linked.key != main.key


def test_names_with_line_feeds_are_read_whole(tmp_path):
    person = Person.init(tmp_path / "odd\nname" / "repo\n")
    person.write("sub\n/x", "1")
    site = locate(person.root / "sub\n", Git.find())
    assert (site.root, site.prefix) == (person.root, b"sub\n/")


def test_plain_folder(tmp_path):
    site = locate(tmp_path, Git.find())
    assert (site.kind, site.root, site.common_dir, site.head) == ("plain", tmp_path, None, None)


@pytest.mark.parametrize("path", ["relative/path", "/nonexistent/folder"])
def test_what_is_no_folder_is_refused(path):
    with pytest.raises(InvalidInput):
        locate(Path(path), Git.find())


def test_a_file_is_refused(person):
    with pytest.raises(InvalidInput, match="not a folder"):
        locate(person.root / "src/a.py", Git.find())


def test_root_and_home_are_refused(own_home):
    for folder in (Path("/"), own_home, own_home.parent):
        with pytest.raises(InvalidInput, match="choose a project folder"):
            locate(folder, Git.find())
    (own_home / "project").mkdir()
    assert locate(own_home / "project", Git.find()).kind == "plain"


def test_bare_repository_and_inside_of_a_git_directory_are_refused(person, tmp_path):
    person.git("clone", "-q", "--bare", str(person.root), str(tmp_path / "bare.git"))
    with pytest.raises(Unsupported, match="bare repository"):
        locate(tmp_path / "bare.git", Git.find())
    with pytest.raises(Unsupported, match="inside a git directory"):
        locate(person.root / ".git" / "objects", Git.find())


def test_a_broken_repository_is_not_taken_for_a_plain_folder(person):
    (person.root / ".git/HEAD").unlink()
    with pytest.raises(Unsupported, match="git cannot use"):
        locate(person.root, Git.find())


def test_a_git_file_that_leads_nowhere_is_not_taken_for_a_plain_folder(tmp_path):
    (tmp_path / ".git").write_text("gitdir: /nonexistent\n")
    with pytest.raises(Unsupported):
        locate(tmp_path, Git.find())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_another_user_is_refused_unless_the_person_trusts_it(person):
    os.chown(person.root, 4242, 4242)
    os.chown(person.root / ".git", 4242, 4242)
    with pytest.raises(Unsupported, match=r"belongs to another user.*safe\.directory"):
        locate(person.root, Git.find())
    Person(Path.home()).git("config", "--global", "safe.directory", str(person.root))
    assert locate(person.root, Git.find()).kind == "git"


def test_settings_that_matter_are_read(person):
    person.git("config", "core.fileMode", "false")
    person.git("config", "remote.origin.promisor", "true")
    site = locate(person.root, Git.find())
    assert (site.file_mode, site.partial, site.shallow) == (False, True, False)


def test_missing_git_is_one_line():
    with pytest.raises(Unsupported, match=r"install git 2\.38"):
        Git.find({"PATH": "/nonexistent"})


def test_old_git_is_one_line(tmp_path):
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\necho git version 2.37.9\n")
    fake.chmod(0o755)
    with pytest.raises(Unsupported, match=r"git 2\.37\.9 .* too old"):
        Git.find({"PATH": str(tmp_path)})


def test_what_keeps_git_from_telling_its_version_is_said_in_its_own_words(tmp_path, monkeypatch):
    real = Git.find().binary
    (tmp_path / ".gitconfig").write_text("[broken")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    (tmp_path / "git").symlink_to(real)  # nobody asked this one yet
    with pytest.raises(Unsupported, match=r"version: fatal: bad config line \d in file .*\.gitconfig"):
        Git.find({"PATH": str(tmp_path)})


def test_git_is_never_one_that_lies_where_one_happens_to_be(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    for folder in (tmp_path, tmp_path / "bin"):
        (folder / "git").write_text("#!/bin/sh\necho git version 9.9.9\n")
        (folder / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    real = Git.find().binary
    assert Git.find({"PATH": f":.:bin:{real.parent}"}).binary == real
    with pytest.raises(Unsupported, match="not found on PATH"):
        Git.find({"PATH": ".:bin:"})


def test_a_git_that_does_not_run_is_one_line(tmp_path):
    fake = tmp_path / "git"
    fake.write_text("#!/nonexistent/interpreter\n")
    fake.chmod(0o755)
    with pytest.raises(Unsupported, match="cannot be run"):
        Git.find({"PATH": str(tmp_path)})
