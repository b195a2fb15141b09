"""What is told without asking git is what git would have said: paths, changes, leftovers and objects."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baton.ledger.state import StateFolder
from baton.workspace import capture as capturing
from baton.workspace import worktree_git
from baton.workspace.changes import changes_between, outside_between
from baton.workspace.git import Git
from baton.workspace.locate import locate
from baton.workspace.repository import PrivateRepository
from baton.workspace.scan import scan_worktree
from baton.workspace.tree_paths import TreePaths, folders_of, tree_paths
from baton.workspace.worktree_git import give_git
from workspace.person import Person, on_disk

RULES = b"*.log\nbuild/\n/sub/out\n"

PATHS = st.sampled_from(
    [
        *(b"a", b"b", b"sub/a", b"sub/deep/b", b"sub/out", b"sub/out/x", b"build/x", b"build", b"x.log"),
        *(b"sub/x.log", b"a/under", b"sub", b"new/one", b"new/two/three", b"\xff\n", b".gitignore"),
    ]
)
KINDS = st.sampled_from(["write", "write", "same", "link", "delete", "folder", "nested", "pipe", "locked"])
EDITS = st.lists(st.tuples(PATHS, KINDS, st.sampled_from([b"1\n", b"two\n", b"x" * 400])), max_size=8)

BEFORE = {b".gitignore": RULES, b"a": b"1\n", b"b": b"x" * 400, b"sub/a": b"1\n", b"sub/deep/b": b"2\n"}


def edit(root: Path, edits: list[tuple[bytes, str, bytes]]) -> None:
    """As a worker might: what cannot be done is left."""
    hand = Person(root)
    for path, kind, data in edits:
        full = os.path.join(os.fsencode(root), path)
        try:
            if os.path.lexists(full) and stat.S_ISFIFO(os.lstat(full).st_mode):
                continue  # whoever opened it would wait for ever
            if kind == "delete":
                os.unlink(full)
            elif kind == "folder":
                os.makedirs(full)
            elif kind == "nested":
                Person.init(Path(os.fsdecode(full))).write("inner", data)
            elif kind == "pipe":
                os.mkfifo(full)
            elif kind == "locked":
                os.makedirs(full, mode=0o700)
                hand.write(path + b"/in", data)
                os.chmod(full, 0o500)
            elif kind == "link":
                if os.path.lexists(full):
                    os.unlink(full)
                hand.link(path, data.strip())
            else:
                hand.write(path, data if kind == "write" else BEFORE.get(path, data))
        except OSError:
            continue


@pytest.fixture(scope="module", params=["", "sub"])
def shop(request):
    with tempfile.TemporaryDirectory() as folder:
        top = Path(os.path.realpath(folder))
        person = Person.init(top / "project")
        for path, data in BEFORE.items():
            person.write(path, data)
        person.commit()
        state = StateFolder.find({"BATON_STATE": str(top / "state")})
        git = Git.find()
        repo = PrivateRepository.open(state, locate(person.root / request.param, git), git=git)
        yield repo, repo.snapshot("refs/runs/r1/base"), top / "aside"


def folders_on_disk(root: Path) -> set[bytes]:
    found = set()
    for at, names, _ in os.walk(os.fsencode(root)):
        found |= {os.path.relpath(os.path.join(at, name), os.fsencode(root)) for name in names}
    return {path for path in found if not os.path.islink(os.path.join(os.fsencode(root), path))}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS, then=EDITS)
def test_capture_and_reset_are_as_with_every_question_to_git(shop, edits, then):
    repo, base, aside = shop
    tree = repo.add_worktree("r1-1", base.commit)
    start = on_disk(tree.root)
    assert {path: data for path, (_, data) in start.items()} == BEFORE
    assert folders_on_disk(tree.root) == {b"sub", b"sub/deep"}
    edit(tree.root, edits)
    seen = repo.capture(tree, base, "refs/runs/r1/tasks/t/1", aside)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capturing, "scan_worktree", ask_git)
        asked = repo.capture(tree, base, "refs/runs/r1/tasks/t/2", aside)
    for name in ("tree", "changes", "ignored", "nested", "leaving_links", "outside", "over_limit"):
        assert getattr(seen, name) == getattr(asked, name)
    assert seen.changes == changes_between(repo, base.commit, seen.commit)
    assert seen.outside == outside_between(repo, base.commit, seen.commit)
    paths = tree_paths(repo, seen.commit)
    listed = repo.run(["ls-tree", "-r", "-z", "--name-only", "--full-tree", seen.commit]).stdout
    assert paths.files == frozenset(listed.split(b"\0")[:-1])
    assert paths.folders == folders_of(paths.files)

    other = repo.add_worktree("r1-2", base.commit)
    edit(other.root, then)
    again = repo.add_worktree("r1-2", seen.commit)
    assert on_disk(again.root).keys() == paths.files
    assert folders_on_disk(again.root) == paths.folders
    look = repo.run(
        ["diff-files", "--name-only"], git_dir=again.admin, work_tree=again.root, index=again.index
    )
    assert look.stdout == b""
    git = give_git(repo, again, seen.commit, base.head)
    assert git is not None
    # Complete without the store, and with nothing that is not of this commit.
    variables = {"GIT_OBJECT_DIRECTORY": str(git / "objects")}
    repo.git.own(["fsck", "--connectivity-only", seen.commit], git_dir=git, env=variables)
    own = {path.parent.name + path.name for path in (git / "objects").glob("??/*")}
    reach = repo.run(["rev-list", "--objects", "--no-object-names", seen.commit]).stdout.decode().split()
    assert own <= set(reach)


def ask_git(root, leave_out, limit, known):
    """A walk that knows no path, so that git is asked about all of them."""
    return scan_worktree(root, leave_out, limit, TreePaths(frozenset(), frozenset()))


def objects_of(repo, git: Path) -> set[str]:
    listing = ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]
    # Its own alone: what it borrows is out of sight.
    (git / "objects" / "info" / "alternates").unlink()
    variables = {"GIT_OBJECT_DIRECTORY": str(git / "objects")}
    return set(repo.git.own(listing, git_dir=git, env=variables).stdout.decode().split())


@pytest.mark.parametrize("most", [0, 12])
def test_a_git_directory_holds_what_its_commit_has_beyond_head_and_no_more(shop, monkeypatch, most):
    repo, base, aside = shop
    monkeypatch.setattr(worktree_git, "MOST_COPIED", most)
    for number in range(3):
        tree = repo.add_worktree("r1-1", base.commit)
        edit(tree.root, [(b"sub/fresh", "write", b"%d %d\n" % (most, number))])
        seen = repo.capture(tree, base, f"refs/runs/r1/tasks/t/{number}", aside)
        again = repo.add_worktree("r1-2", seen.commit)
        git = give_git(repo, again, seen.commit, base.head)
        assert git is not None
        listed = repo.run(["rev-list", "--objects", "--no-object-names", seen.commit, f"^{base.head}"]).stdout
        packs = list((git / "objects" / "pack").glob("*.pack"))
        assert len(packs) == 1 and bool(list((git / "objects").glob("??"))) == (most > 0)
        assert objects_of(repo, git) == set(listed.decode().split())
