"""Worktrees made ready ahead of need are used without another full look, but only while nobody else came."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from baton.ledger.locks import FileLock
from baton.ledger.state import StateFolder
from baton.workspace import warm
from baton.workspace import worktree as resetting
from baton.workspace.pool import WorktreePool
from baton.workspace.repository import PrivateRepository
from baton.workspace.tree_paths import tree_paths
from baton.workspace.watcher import Watcher
from baton.workspace.worktree import Worktree
from workspace.person import Person, on_disk


@dataclass
class Shop:
    repo: PrivateRepository
    state: StateFolder
    person: Person
    base: str
    looks: list[str]
    """Names of worktrees that were looked at in full."""
    patch: pytest.MonkeyPatch

    @property
    def pool(self) -> WorktreePool:
        return WorktreePool(self.repo, self.state)

    def lock(self, number: int) -> FileLock:
        return FileLock(self.state.locks / f"worktree-{self.name(number)}.lock")

    def name(self, number: int) -> str:
        return f"{self.repo.site.key[:12]}-{number}"

    def worktree(self, number: int) -> Worktree:
        found = self.repo.open_worktree(self.name(number))
        assert found is not None
        return found

    def make_ready(self, most: int = 4, stopped: Callable[[], bool] = lambda: False) -> list[str]:
        """The worktrees that were looked at for it."""
        self.looks.clear()
        self.pool.make_ready(self.base, most, stopped)
        looked, self.looks[:] = list(self.looks), []
        return looked


@contextmanager
def another_process(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is done here is done by one that knows nothing, and has no watchers whose doings one could see."""
    with patch.context() as patched:
        patched.setattr(warm, "_WARM", {})
        patched.setattr(Watcher, "of", lambda *_: None)
        yield


@pytest.fixture
def shop(tmp_path, state, open_repository, monkeypatch) -> Iterator[Shop]:
    """Two worktrees that another process has made and given back."""
    probe = Watcher.of(tmp_path, [])
    if probe is None:
        pytest.skip("this system does not report what is written")
    probe.close()
    person = Person.init(tmp_path / "project")
    for path in ("a", "sub/a", "sub/deep/b"):
        person.write(path, f"{path}\n")
    person.commit()
    repo = open_repository(person)
    base = repo.snapshot("refs/runs/r1/base").commit
    made = Shop(repo, state, person, base, [], monkeypatch)
    with another_process(monkeypatch):
        leases = [made.pool.lease(base) for _ in range(2)]
        for lease in leases:
            (lease.worktree.root / "sub/a").write_text("somebody's\n")
            lease.give_back()
    whole = resetting.reset_worktree

    def counted(repo: PrivateRepository, worktree: Worktree, commit: str) -> None:
        made.looks.append(worktree.name)
        whole(repo, worktree, commit)

    monkeypatch.setattr(resetting, "reset_worktree", counted)
    yield made
    for admin in list(warm._WARM):
        warm._WARM.pop(admin).watcher.close()


def is_clean(worktree: Worktree) -> bool:
    found = {path: data for path, (_mode, data) in on_disk(worktree.root).items()}
    return found == {path: path + b"\n" for path in (b"a", b"sub/a", b"sub/deep/b")}


def test_what_was_made_ready_is_leased_without_another_look_and_no_lock_is_kept(shop):
    assert shop.make_ready() == [shop.name(1), shop.name(2)]
    assert all(shop.lock(number).try_acquire() for number in (1, 2))
    leases = [shop.pool.lease(shop.base) for _ in range(2)]
    assert shop.looks == []
    assert all(is_clean(lease.worktree) for lease in leases)


def test_a_later_snapshot_of_the_same_tree_needs_neither_a_look_nor_a_listing(shop, monkeypatch):
    shop.make_ready()
    shop.person.commit("the same files")
    later = shop.repo.snapshot("refs/runs/r2/base").commit
    assert later != shop.base
    known = tree_paths(shop.repo, shop.base)
    commands: list[str] = []
    ran = PrivateRepository.run

    def noted(self, args, **options):
        commands.append(args[0])
        return ran(self, args, **options)

    monkeypatch.setattr(PrivateRepository, "run", noted)
    lease = shop.pool.lease(later)
    assert commands == [] == shop.looks
    assert tree_paths(shop.repo, later) is known
    assert lease.worktree.head == later and is_clean(lease.worktree)


def unchanged(worktree: Worktree) -> None:
    pass


def written(worktree: Worktree) -> None:
    (worktree.root / "sub/a").write_text("theirs\n")


def restored_exactly(worktree: Worktree) -> None:
    """Content, size and time as before."""
    file = worktree.root / "sub/a"
    before = file.stat()
    file.write_bytes(b"sub/A\n")
    file.write_bytes(b"sub/a\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("use", [unchanged, written, restored_exactly])
def test_a_use_by_another_process_leads_to_a_full_look_whatever_it_did(shop, use):
    """Also when it left HEAD and index as they were, to the very file."""
    shop.make_ready(1)
    worktree = shop.worktree(1)
    before, kept = warm._signature(worktree), worktree.admin / "kept"
    os.link(worktree.index, kept)
    with another_process(shop.patch):
        lease = shop.pool.lease(shop.base)
        assert lease.worktree == worktree
        use(worktree)
        lease.give_back()
    kept.replace(worktree.index)
    assert warm._signature(worktree) == before
    shop.looks.clear()
    lease = shop.pool.lease(shop.base)
    assert lease.worktree == worktree
    assert shop.looks == [worktree.name]
    assert is_clean(worktree)


def test_what_was_written_while_nobody_used_it_is_restored(shop):
    shop.make_ready(1)
    (shop.worktree(1).root / "sub/a").write_text("by whom?\n")
    assert is_clean(shop.pool.lease(shop.base).worktree)


def test_those_in_use_or_with_uncaptured_work_are_passed_over_and_none_is_made(shop):
    with another_process(shop.patch):
        used = shop.pool.lease(shop.base)
        held = shop.pool.lease(shop.base)
        held.reserve("r1/t/1")
        held.lock.release()  # its process died
        (used.worktree.root / "a").write_text("at work\n")
        (held.worktree.root / "a").write_text("not captured yet\n")
    before = shop.repo.list_worktrees()
    assert shop.make_ready() == []
    assert (used.worktree.root / "a").read_text() == "at work\n"
    assert (held.worktree.root / "a").read_text() == "not captured yet\n"
    used.give_back()
    assert shop.make_ready() == [used.worktree.name]
    assert shop.repo.list_worktrees() == before


def test_it_stops_between_two_worktrees(shop):
    assert shop.make_ready(stopped=lambda: bool(shop.looks)) == [shop.name(1)]
    assert shop.make_ready(stopped=lambda: True) == []


def test_one_that_cannot_be_brought_there_keeps_nobody_from_the_next(shop):
    shop.worktree(1).index.write_bytes(b"damaged")
    assert shop.make_ready() == [shop.name(1), shop.name(2)]
    leases = [shop.pool.lease(shop.base) for _ in range(2)]
    assert shop.looks == [shop.name(1)]
    assert all(is_clean(lease.worktree) for lease in leases)


def test_at_rest_no_more_watches_are_taken_than_one_worktree_may_have(shop, monkeypatch):
    monkeypatch.setattr(warm, "most_folders", lambda: 7)  # one has four: itself, its parent, two below
    assert shop.make_ready() == [shop.name(1)]
    monkeypatch.setattr(warm, "most_folders", lambda: 3)
    assert shop.make_ready() == []


def test_nothing_is_made_where_nothing_is(shop, tmp_path, open_repository):
    other = Person.init(tmp_path / "other")
    other.write("a", "a\n")
    other.commit()
    repo = open_repository(other)
    commit = repo.snapshot("refs/runs/r1/base").commit
    before = sorted(tmp_path.rglob("*"))
    WorktreePool(repo, shop.state).make_ready(commit, 4, lambda: False)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_known_of_another_repository_makes_room(shop, tmp_path, open_repository):
    shop.make_ready()
    first = [one.watcher for one in warm._WARM.values()]
    other = Person.init(tmp_path / "other")
    other.write("a", "a\n")
    other.commit()
    repo = open_repository(other)
    warm.keep_only(repo)
    assert warm._WARM == {} and all(watcher.told(()) is None for watcher in first)
    lease = WorktreePool(repo, shop.state).lease(repo.snapshot("refs/runs/r1/base").commit)
    warm.keep_only(repo)
    assert list(warm._WARM) == [lease.worktree.admin]
