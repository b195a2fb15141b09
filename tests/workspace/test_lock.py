"""The repository lock excludes every other session, and leaves nothing in a plain folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import baton
from baton.contract.errors import Busy
from baton.workspace.git import Git
from baton.workspace.locate import locate
from baton.workspace.lock import RepositoryLock


@pytest.fixture(params=["git", "plain", "linked"])
def site(request, person, tmp_path):
    folder = {"git": person.root, "plain": tmp_path / "plain", "linked": tmp_path / "linked"}[request.param]
    if request.param == "plain":
        folder.mkdir()
    if request.param == "linked":
        person.git("worktree", "add", "-q", "--detach", str(folder))
    return locate(folder, Git.find())


def test_one_holds_it_the_other_is_told(site):
    first, second = RepositoryLock(site), RepositoryLock(site)
    with first:
        assert first.held
        with pytest.raises(Busy, match="another session"):
            second.acquire(timeout=0.05)
        assert not second.held
    with second:
        assert second.held


def test_it_ends_with_its_process(site):
    script = (
        "import sys; from pathlib import Path; from baton.workspace.git import Git;"
        "from baton.workspace.locate import locate; from baton.workspace.lock import RepositoryLock;"
        "RepositoryLock(locate(Path(sys.argv[1]), Git.find())).acquire();"
        "print('held', flush=True); sys.stdin.read()"
    )
    source = str(Path(baton.__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(site.workspace)],
        env={"PYTHONPATH": source, "PATH": Git.find().environment["PATH"], "HOME": "/nonexistent"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(Busy):
            RepositoryLock(site).acquire(timeout=0)
        child.kill()
        child.wait()
        RepositoryLock(site).acquire(timeout=30)


def test_linked_worktrees_share_it(person, tmp_path):
    person.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    git = Git.find()
    with RepositoryLock(locate(person.root, git)), pytest.raises(Busy):
        RepositoryLock(locate(tmp_path / "linked", git)).acquire(timeout=0)


def test_nothing_is_left_in_a_plain_folder(tmp_path):
    with RepositoryLock(locate(tmp_path, Git.find())):
        pass
    assert list(tmp_path.glob("*baton*")) == []
