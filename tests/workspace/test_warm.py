"""What is done by what was written alone ends as it would with a look at everything."""

from __future__ import annotations

import contextlib
import os

import pytest
from hypothesis import HealthCheck, example, given, settings

from baton.workspace import capture as capturing
from baton.workspace import warm
from baton.workspace import worktree as resetting
from baton.workspace.pool import WorktreePool
from baton.workspace.watcher import Watcher
from baton.workspace.worktree_git import give_git
from workspace.person import Person, on_disk
from workspace.test_short_ways import BEFORE, EDITS, edit, folders_on_disk

TASK = "refs/runs/r1/tasks/t/1"


@pytest.fixture
def shop(tmp_path, state, open_repository):
    person = Person.init(tmp_path / "project")
    for path, data in BEFORE.items():
        person.write(path, data)
    person.commit()
    repo = open_repository(person)
    probe = Watcher.of(tmp_path / "project", [])
    if probe is None:
        pytest.skip("this system does not report what is written")
    probe.close()
    yield repo, WorktreePool(repo, state), person, tmp_path / "aside"
    for admin in list(warm._WARM):
        warm._WARM.pop(admin).watcher.close()


def never(*_args, **_options):
    raise AssertionError("everything was looked at")


def clean_at(repo, worktree, commit: str) -> None:
    """Nothing but the commit's files lies there, as a checkout makes them."""
    listed = repo.run(["ls-tree", "-r", "-z", "--full-tree", commit]).stdout.split(b"\0")[:-1]
    modes = {line.partition(b"\t")[2]: line[:6] for line in listed}
    found = on_disk(worktree.root)
    assert found.keys() == modes.keys()
    for path, (_mode, data) in found.items():
        full = os.path.join(os.fsencode(worktree.root), path)
        assert data == repo.run(["cat-file", "blob", b"%s:%s" % (commit.encode(), path)]).stdout
        assert os.path.islink(full) or os.lstat(full).st_mode & 0o111 == (
            0o111 if b"755" in modes[path] else 0
        )
        assert os.path.islink(full) or os.lstat(full).st_mode & 0o600 == 0o600
    folders = {path.rpartition(b"/")[0] for path in modes} - {b""}
    assert folders_on_disk(worktree.root) >= folders
    assert all(any(path.startswith(at + b"/") for path in modes) for at in folders_on_disk(worktree.root))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS, then=EDITS)
@example(edits=[(b"a", "write", b"two\n"), (b"sub/a", "link", b"two\n")], then=[(b"a", "write", b"1\n")])
@example(edits=[(b"new/one", "write", b"two\n")], then=[(b"sub/deep/b", "delete", b"")])
@example(edits=[(b"sub/x.log", "write", b"two\n")], then=[(b"build/x", "write", b"1\n")])
def test_leases_and_captures_are_as_with_a_look_at_everything(shop, edits, then):
    repo, pool, _, aside = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    pool.lease(base).give_back()
    lease = pool.lease(base)
    root = lease.worktree.root
    lease.prepared(sandboxed=(root, root / "sub", root / "sub" / "deep"))
    edit(root, edits)
    seen = repo.capture(lease.worktree, base, TASK, aside, (root,))
    lease.give_back()
    other = repo.add_worktree("full", base)
    edit(other.root, edits)
    full = repo.capture(other, base, f"{TASK}-full", aside)
    for name in ("tree", "changes", "ignored", "nested", "leaving_links", "outside", "over_limit"):
        assert getattr(seen, name) == getattr(full, name)
    assert set(seen.unsupported) == set(full.unsupported)

    checked = pool.lease(seen.commit)
    clean_at(repo, checked.worktree, seen.commit)
    git = give_git(repo, checked.worktree, seen.commit, base)
    assert git is not None
    status = repo.run(
        ["status", "--porcelain", "-uall", "--ignored"],
        git_dir=git,
        work_tree=checked.worktree.root,
        index=git / "index",
    )
    assert status.stdout == b""
    checked.prepared()
    edit(checked.worktree.root, then)
    checked.give_back()
    for commit in (base, seen.commit, base):
        again = pool.lease(commit)
        clean_at(repo, again.worktree, commit)
        again.give_back()


def test_a_plain_task_costs_no_look_at_everything(shop, monkeypatch):
    repo, pool, person, aside = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    pool.lease(base).give_back()
    monkeypatch.setattr(capturing, "scan_worktree", never)
    monkeypatch.setattr(resetting, "reset_worktree", never)
    lease = pool.lease(base)
    (lease.worktree.root / "made").mkdir()
    lease.prepared()
    (lease.worktree.root / "made" / "file").write_text("1\n")
    (lease.worktree.root / "a").write_text("2\n")
    captured = repo.capture(lease.worktree, base, TASK, aside, (lease.worktree.root,))
    assert [change.path for change in captured.changes] == [b"a", b"made/file"]
    lease.give_back()
    checked = pool.lease(captured.commit)
    assert checked.worktree == lease.worktree
    clean_at(repo, checked.worktree, captured.commit)
    checked.prepared()
    (checked.worktree.root / "made" / "file").write_text("3\n")
    (checked.worktree.root / "cache.log").write_text("ignored\n")
    checked.give_back()
    person.write("b", b"moved on\n")
    later = repo.snapshot("refs/runs/r1/later").commit
    for commit in (captured.commit, later, base):
        again = pool.lease(commit)
        assert again.worktree == lease.worktree
        clean_at(repo, again.worktree, commit)
        again.give_back()
    person.write("b", BEFORE[b"b"])


def test_a_change_of_known_files_is_taken_in_and_back_with_one_use_of_an_index(shop, monkeypatch):
    repo, pool, _, aside = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    pool.lease(base).give_back()
    lease = pool.lease(base)
    lease.prepared()
    (lease.worktree.root / "a").write_text("2\n")
    (lease.worktree.root / "sub" / "a").chmod(0o755)
    asked: list[str] = []
    run = type(repo.git).own

    def listening(self, args, **options):
        asked.append(str(args[0]))
        return run(self, args, **options)

    monkeypatch.setattr(type(repo.git), "own", listening)
    captured = repo.capture(lease.worktree, base, TASK, aside, (lease.worktree.root,))
    lease.give_back()
    again = pool.lease(base)
    assert again.worktree == lease.worktree
    monkeypatch.undo()
    assert [change.path for change in captured.changes] == [b"a", b"sub/a"]
    clean_at(repo, again.worktree, base)
    again.give_back()
    uses_an_index = ["update-index", "write-tree", "diff-files", "checkout-index", "ls-files", "read-tree"]
    assert [verb for verb in asked if verb in uses_an_index] == ["update-index"]
    assert "diff-tree" not in asked


def test_links_to_dependencies_are_no_part_of_a_result_and_are_made_anew(shop):
    repo, pool, person, aside = shop
    person.write("sub/out/dep.js", b"dep")
    base = repo.snapshot("refs/runs/r1/base").commit
    pool.lease(base).give_back()
    lease = pool.lease(base)
    made = repo.link_dependencies(lease.worktree, ["out"], "link")
    assert made == (lease.worktree.root / "sub" / "out",)
    lease.prepared()
    (lease.worktree.root / "a").write_text("2\n")
    captured = repo.capture(lease.worktree, base, TASK, aside, (lease.worktree.root,))
    assert [change.path for change in captured.changes] == [b"a"]
    lease.give_back()
    checked = pool.lease(captured.commit)
    clean_at(repo, checked.worktree, captured.commit)
    assert (person.root / "sub/out/dep.js").read_bytes() == b"dep"


def test_a_file_whose_path_is_too_long_to_be_looked_at_is_told(tmp_path, state, open_repository):
    person = Person.init(tmp_path / "project")
    person.write("a", b"1\n")
    root = len(os.fsencode(state.worktrees)) + 2 * len("/0123456789ab-1")
    # A folder that can be looked at, and in it a file that cannot, but by who stands at the root, as git.
    length = 4096 - 253 - root // 2
    deep = [b"d" * 249] * (length // 250) + [b"e"] * (length % 250 // 2)
    _write_deep(os.fsencode(person.root), deep, b"1\n")
    person.commit()
    repo = open_repository(person)
    pool = WorktreePool(repo, state)
    base = repo.snapshot("refs/runs/r1/base").commit
    lease = pool.lease(base)
    root = lease.worktree.root
    with pytest.raises(OSError, match="too long"):
        os.lstat(os.path.join(os.fsencode(root), *deep, b"f" * 252))
    lease.prepared()
    _write_deep(os.fsencode(root), deep, b"2\n")
    captured = repo.capture(lease.worktree, base, TASK, tmp_path / "aside", (root,))
    assert captured.unsupported == (b"/".join([*deep, b"f" * 252]),)
    lease.give_back()
    warm.forget(lease.worktree)


def _write_deep(top: bytes, folders: list[bytes], content: bytes) -> None:
    at = os.open(top, os.O_RDONLY)
    for name in folders:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=at)
        above, at = at, os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(above)
    with open(os.open(b"f" * 252, os.O_CREAT | os.O_WRONLY, dir_fd=at), "wb") as file:
        file.write(content)
    os.close(at)


def test_work_in_a_workspace_without_a_tracked_file_is_seen(tmp_path, state, open_repository):
    person = Person.init(tmp_path / "project")
    person.write("a", b"1\n")
    person.commit()
    (person.root / "pkg" / "new").mkdir(parents=True)
    repo = open_repository(person.root / "pkg" / "new")
    pool = WorktreePool(repo, state)
    base = repo.snapshot("refs/runs/r1/base").commit
    for _ in range(2):
        lease = pool.lease(base)
        lease.prepared()
        (lease.worktree.cwd / "made").write_text("work\n")
        captured = repo.capture(lease.worktree, base, TASK, tmp_path / "aside", (lease.worktree.cwd,))
        assert [change.path for change in captured.changes] == [b"made"]
        lease.give_back()
    warm.forget(lease.worktree)


def test_a_worktree_that_a_check_had_is_a_workers_as_any_other(shop):
    repo, pool, _, _ = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    pool.lease(base).give_back()
    lease = pool.lease(base)
    lease.prepared(one_at_a_time=True)
    lease.give_back()
    lease = pool.lease(base)
    lease.prepared()
    root, other = lease.worktree.root, lease.worktree.root.parents[1] / "probe"
    before = os.stat(root.parent).st_ctime_ns
    while not other.exists() or other.stat().st_ctime_ns <= before:  # a sandbox starts no faster
        other.touch()
    (root / ".codex").mkdir()
    os.link(root / "sub/a", root / ".codex" / "alias")
    (root / ".codex" / "alias").write_text("through the other name\n")
    (root / ".codex" / "alias").unlink()
    (root / ".codex").rmdir()
    lease.give_back()
    again = pool.lease(base)
    assert again.worktree == lease.worktree
    clean_at(repo, again.worktree, base)
    again.give_back()


def test_folders_made_for_a_worker_who_did_not_need_them_are_no_part_of_a_result(shop):
    repo, pool, _, aside = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    lease = pool.lease(base)
    (lease.worktree.root / "p" / "q" / "r").mkdir(parents=True)
    lease.prepared()
    (lease.worktree.root / "p" / "file").write_text("1\n")
    captured = repo.capture(lease.worktree, base, TASK, aside, (lease.worktree.root,))
    lease.give_back()
    checked = pool.lease(captured.commit)
    assert checked.worktree == lease.worktree
    clean_at(repo, checked.worktree, captured.commit)
    checked.give_back()


def test_what_was_taken_back_of_an_earlier_attempt_leaves_no_empty_folder(shop):
    repo, pool, _, aside = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    lease = pool.lease(base)
    (lease.worktree.root / "new").mkdir()
    lease.prepared()
    (lease.worktree.root / "new" / "one").write_text("1\n")
    first = repo.capture(lease.worktree, base, TASK, aside, (lease.worktree.root,))
    lease.give_back()
    pool.lease(base).give_back()
    lease = pool.lease(first.commit)
    lease.prepared()
    (lease.worktree.root / "new" / "one").unlink()
    (lease.worktree.root / "a").write_text("2\n")
    second = repo.capture(lease.worktree, base, TASK, aside, (lease.worktree.root,))
    assert [change.path for change in second.changes] == [b"a"]
    lease.give_back()
    checked = pool.lease(second.commit)
    clean_at(repo, checked.worktree, second.commit)
    checked.give_back()


def test_what_a_worker_put_in_the_place_of_a_link_is_part_of_the_result(shop):
    repo, pool, person, aside = shop
    person.write("vendor/dep.js", b"dep")
    person.write(".git/info/exclude", b"/vendor/\n")
    base = repo.snapshot("refs/runs/r1/base").commit
    pool.lease(base).give_back()
    lease = pool.lease(base)
    assert repo.link_dependencies(lease.worktree, ["vendor"], "link")
    lease.prepared()
    (lease.worktree.root / "vendor").unlink()
    (lease.worktree.root / "vendor").write_text("mine\n")
    captured = repo.capture(lease.worktree, base, TASK, aside, (lease.worktree.root,))
    assert [change.path for change in captured.changes] == [b"vendor"]
    lease.give_back()
    checked = pool.lease(captured.commit)
    clean_at(repo, checked.worktree, captured.commit)
    checked.give_back()


def test_without_a_sandbox_everything_is_looked_at(shop):
    repo, pool, _, aside = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    lease = pool.lease(base)
    lease.prepared()
    outside = lease.worktree.root.parent.parent / "alias"
    os.link(lease.worktree.root / "a", outside)
    outside.write_text("by another name, elsewhere\n")  # which no watcher sees
    captured = repo.capture(lease.worktree, base, TASK, aside)
    assert [change.path for change in captured.changes] == [b"a"]
    lease.give_back()
    lease = pool.lease(base)
    lease.prepared()
    outside.unlink()
    os.link(lease.worktree.root / "b", outside)
    outside.write_text("once more\n")
    lease.distrust()
    lease.give_back()
    again = pool.lease(base)
    clean_at(repo, again.worktree, base)
    again.give_back()
    outside.unlink()


def test_a_worktree_that_another_used_meanwhile_is_looked_at(shop):
    repo, pool, _, aside = shop
    base = repo.snapshot("refs/runs/r1/base").commit
    lease = pool.lease(base)
    lease.prepared()
    (lease.worktree.root / "a").write_text("2\n")
    captured = repo.capture(lease.worktree, base, TASK, aside, (lease.worktree.root,))
    lease.give_back()
    repo.reset_worktree(lease.worktree, captured.commit)  # as another process would
    (lease.worktree.root / "sub" / "a").write_text("theirs\n")
    for commit in (base, captured.commit):
        again = pool.lease(commit)
        clean_at(repo, again.worktree, commit)
        again.give_back()
