"""Mount points of sandboxes are in a warm worktree while somebody works there, and nobody sees them after."""

from __future__ import annotations

import os

import pytest

from baton.workspace import capture as capturing
from baton.workspace import warm
from baton.workspace import watcher as watching
from baton.workspace import worktree as resetting
from baton.workspace.create import MOUNT_POINTS
from baton.workspace.mount_points import take_mount_points
from baton.workspace.worktree import Worktree
from workspace import test_warm as plain
from workspace.person import Person
from workspace.test_short_ways import folders_on_disk
from workspace.test_warm import TASK, clean_at, never

MOUNTS = frozenset(os.fsencode(name) for name in MOUNT_POINTS)

shop = plain.shop


@pytest.fixture
def asked(monkeypatch) -> list[bytes]:
    """The folders of which the times of all files were asked."""
    tops: list[bytes] = []
    monkeypatch.setattr(watching, "_changed_files", lambda top, since: tops.append(top) or [])
    return tops


def mount_points(worktree: Worktree) -> set[bytes]:
    return {path for path in folders_on_disk(worktree.slot) if os.path.basename(path) in MOUNTS}


def test_a_sandbox_finds_its_mount_points_and_no_file_is_asked_for_its_time(shop, asked, monkeypatch):
    repo, pool, _, aside = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    pool.lease(base).give_back()
    monkeypatch.setattr(capturing, "scan_worktree", never)
    monkeypatch.setattr(resetting, "reset_worktree", never)
    for text in ("2\n", None):
        lease = pool.lease(base)
        tree = lease.worktree
        folders = (tree.slot, tree.root, tree.root / "sub")
        (tree.root / ".codex").mkdir()  # the scope names it
        lease.prepared(sandboxed=folders)
        at = os.fsencode(tree.root.name)
        inside = {at + b"/" + name for name in MOUNTS - {b".git"}} | {at + b"/sub/" + name for name in MOUNTS}
        assert mount_points(tree) == MOUNTS | inside
        assert warm._WARM[tree.admin].odd == {b".codex"}
        if text is not None:
            (tree.root / "sub" / "a").write_text(text)
        captured = repo.capture(tree, base, TASK, aside, folders)
        assert [change.path for change in captured.changes] == ([] if text is None else [b"sub/a"])
        assert not (captured.ignored or captured.nested or captured.unsupported)
        assert mount_points(tree) == MOUNTS  # beside it
        lease.give_back()
        checked = pool.lease(captured.commit)
        assert checked.worktree == tree and not mount_points(tree)
        checked.give_back()
    assert asked == []
    lease = pool.lease(base)
    lease.prepared()
    (lease.worktree.root / ".aws").mkdir()
    (lease.worktree.root / ".aws").rmdir()
    repo.capture(lease.worktree, base, TASK, aside, (lease.worktree.root,))
    assert len(asked) == 1  # as a sandbox does that finds none


def test_mount_points_of_work_that_was_never_captured_go_before_the_next_use(shop, monkeypatch):
    repo, pool, _, _ = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    lease = pool.lease(base)
    lease.prepared(sandboxed=(lease.worktree.root / "sub",))
    lease.give_back()
    monkeypatch.setattr(resetting, "reset_worktree", never)
    again = pool.lease(base)
    assert again.worktree == lease.worktree and not mount_points(again.worktree)
    clean_at(repo, again.worktree, base)
    again.give_back()


def test_what_was_put_into_a_mount_point_and_never_captured_goes_with_it(shop):
    repo, pool, _, _ = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    lease = pool.lease(base)
    lease.prepared(sandboxed=(lease.worktree.root / "sub",))
    (lease.worktree.root / "sub" / ".git" / "HEAD").write_text("x")
    lease.give_back()
    again = pool.lease(base)
    clean_at(repo, again.worktree, base)
    again.give_back()


def test_where_mount_points_cannot_be_made_everything_is_looked_at(shop):
    repo, pool, _, aside = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    lease = pool.lease(base)
    lease.prepared(sandboxed=(lease.worktree.root / "sub", lease.worktree.root / "a"))  # which is a file
    assert lease.worktree.admin not in warm._WARM
    (lease.worktree.root / "a").write_text("2\n")
    captured = repo.capture(lease.worktree, base, TASK, aside, (lease.worktree.root / "sub",))
    assert [change.path for change in captured.changes] == [b"a"] and not captured.nested
    lease.give_back()
    again = pool.lease(base)
    clean_at(repo, again.worktree, base)
    again.give_back()


@pytest.mark.parametrize("captured", [True, False])
def test_mount_points_that_a_dead_process_left_are_no_part_of_what_was_done(shop, captured):
    repo, pool, _, aside = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    lease = pool.lease(base)
    lease.prepared(sandboxed=(lease.worktree.root / "sub",))
    (lease.worktree.root / "a").write_text("2\n")
    warm.forget(lease.worktree)  # what another process knows of it
    if captured:
        found = repo.capture(lease.worktree, base, TASK, aside)
        assert [change.path for change in found.changes] == [b"a"] and not found.nested
    lease.give_back()
    again = pool.lease(base)
    assert again.worktree == lease.worktree and not mount_points(again.worktree)
    clean_at(repo, again.worktree, base)
    assert take_mount_points(again.worktree.root, again.worktree.admin) == frozenset()  # none is on record
    again.give_back()


def test_a_repository_made_in_a_mount_point_is_found(shop):
    repo, pool, _, aside = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    lease = pool.lease(base)
    lease.prepared(sandboxed=(lease.worktree.root, lease.worktree.root / "sub"))
    Person(lease.worktree.root / "sub").git("init", "-q")
    (lease.worktree.root / ".codex" / "config.toml").write_text("mine\n")
    captured = repo.capture(lease.worktree, base, TASK, aside, (lease.worktree.root,))
    assert captured.nested == (b"sub/.git",)
    assert [change.path for change in captured.changes] == [b".codex/config.toml"]
    lease.give_back()
    again = pool.lease(base)
    clean_at(repo, again.worktree, base)
    again.give_back()
