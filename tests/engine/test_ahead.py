"""A waiting runner looks at worktrees ahead of need, takes a run meanwhile, and killed it leaves no harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import baton.engine.spare
from baton.engine.ahead import Ahead, Preparation
from baton.engine.house import House
from baton.engine.spare import SpareRunner
from baton.ledger.locks import FileLock, is_held
from baton.workspace import warm
from baton.workspace.git import Git
from baton.workspace.locate import locate
from baton.workspace.pool import WorktreePool
from baton.workspace.repository import PrivateRepository
from baton.workspace.uses import last_use
from baton.workspace.watcher import Watcher
from baton.workspace.worktree import Worktree
from workspace.person import Person, on_disk

RUN = "rabcdefgh"

DEADLINE = 60.0

FILES = {b"a": b"1\n", b"sub/b": b"2\n"}

STALLED = """#!/bin/sh
case " $* " in *" read-tree --reset -u "*) : >"{started}"; read _ <"{gate}";; esac
exec {git} "$@"
"""
"""Git, but bringing a worktree to a commit waits: no real one can be had to do that at a given moment."""


@dataclass
class Yard:
    """A repository with two worktrees that a run has left, and the spare runner of a session."""

    house: House
    person: Person
    repo: PrivateRepository
    commit: str
    spare: SpareRunner
    started: Path
    gate: Path

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self.spare._waiting is not None
        return self.spare._waiting[0]

    @property
    def ahead(self) -> Ahead:
        return Ahead(str(self.house.state.root), str(self.person.root), self.commit, 4)

    def worktrees(self) -> list[Worktree]:
        found = [self.repo.open_worktree(name) for name in self.repo.list_worktrees()]
        return [one for one in found if one is not None]

    def lock(self, worktree: Worktree) -> Path:
        return self.house.state.locks / f"worktree-{worktree.name}.lock"

    def let_on(self) -> None:
        """Let the git that waits go on, and all later ones."""
        self.gate.with_name("go").write_text("\n")
        with self.gate.open("w") as gate:
            self.gate.with_name("go").replace(self.gate)
            gate.write("\n")


def until(reached: Callable[[], object]) -> None:
    late = time.monotonic() + DEADLINE
    while not reached():
        assert time.monotonic() < late
        time.sleep(0.02)


def watchers(pid: int) -> int:
    """How many of the system's instances a process has."""
    links = []
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(str(handle.readlink()))
        except FileNotFoundError:
            continue
    return links.count("anon_inode:inotify")


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    monkeypatch.setattr(baton.engine.spare, "TAKE_SECONDS", DEADLINE)
    probe = Watcher.of(tmp_path, [])
    if probe is None:
        pytest.skip("this system does not report what is written")
    probe.close()
    person = Person.init(tmp_path / "project")
    for path, data in FILES.items():
        person.write(path, data)
    person.commit()
    real = Git.find()
    started, gate, program = tmp_path / "started", tmp_path / "gate", tmp_path / "bin" / "git"
    os.mkfifo(gate)
    program.parent.mkdir()
    program.write_text(STALLED.format(started=started, gate=gate, git=real.binary))
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    with House.open({**os.environ, "PATH": path}) as house:
        repo = PrivateRepository.open(house.state, locate(person.root, real), None, real)
        commit = repo.snapshot("refs/runs/r1/base").commit
        pool = WorktreePool(repo, house.state)
        for lease in [pool.lease(commit) for _ in range(2)]:
            (lease.worktree.root / "a").write_text("left\n")
            lease.give_back()
            warm.forget(lease.worktree)
        spare = SpareRunner(house)
        yield Yard(house, person, repo, commit, spare, started, gate)
        spare.close()


def clean(worktree: Worktree) -> bool:
    return {path: data for path, (_, data) in on_disk(worktree.root).items()} == FILES


def test_it_brings_the_worktrees_there_watches_them_and_keeps_no_lock(yard: Yard) -> None:
    yard.spare.prepare(yard.ahead)
    until(yard.started.exists)
    yard.let_on()
    until(lambda: watchers(yard.process.pid) == 2)
    until(lambda: not any(is_held(yard.lock(one)) for one in yard.worktrees()))
    assert all(map(clean, yard.worktrees()))


def test_what_it_watches_is_of_the_repository_that_was_worked_in_last(yard: Yard, tmp_path: Path) -> None:
    other = Person.init(tmp_path / "other")
    other.write("a", "1\n")
    other.commit()
    repo = PrivateRepository.open(yard.house.state, locate(other.root, Git.find()))
    commit = repo.snapshot("refs/runs/r2/base").commit
    lease = WorktreePool(repo, yard.house.state).lease(commit)
    lease.give_back()
    warm.forget(lease.worktree)
    yard.spare.prepare(yard.ahead)
    until(yard.started.exists)
    yard.let_on()
    until(lambda: watchers(yard.process.pid) == 2)
    yard.spare.prepare(replace(yard.ahead, workspace=str(other.root), commit=commit))
    until(lambda: watchers(yard.process.pid) == 1)


def test_a_run_is_taken_in_the_midst_of_it_and_no_further_worktree_is(yard: Yard, tmp_path: Path) -> None:
    first, second = yard.worktrees()
    mark = last_use(second)
    yard.spare.prepare(yard.ahead)
    until(yard.started.exists)
    runner, path = yard.process, yard.house.state.run_lock(RUN)
    lock = FileLock(path)
    lock.acquire(1)
    assert yard.spare.give(RUN, lock, tmp_path / "log")  # while git still waits
    lock.release()
    assert is_held(path)
    yard.let_on()
    assert runner.wait(DEADLINE) == 1
    assert f"no run '{RUN}'" in (tmp_path / "log").read_text()
    assert clean(first)
    assert last_use(second) == mark and not clean(second)


def test_one_that_is_killed_in_the_midst_of_it_leaves_a_worktree_to_be_leased_after_its_git(
    yard: Yard,
) -> None:
    first, _ = yard.worktrees()
    yard.spare.prepare(yard.ahead)
    until(yard.started.exists)
    (first.admin / "index.lock").touch()  # as git has it in the midst of its work
    yard.process.kill()
    yard.process.wait(DEADLINE)
    assert is_held(yard.lock(first))
    other = WorktreePool(yard.repo, yard.house.state).lease(yard.commit)
    assert other.worktree != first and clean(other.worktree)
    yard.let_on()
    until(lambda: not is_held(yard.lock(first)))
    (first.admin / "index.lock").touch()
    lease = WorktreePool(yard.repo, yard.house.state).lease(yard.commit)
    assert lease.worktree == first and clean(first)
    for one in (other, lease):
        one.give_back()
        warm.forget(one.worktree)


def no_workspace(yard: Yard) -> None:
    shutil.rmtree(yard.person.root)


def no_worktrees(yard: Yard) -> None:
    shutil.rmtree(yard.house.state.worktrees)


def no_repository(yard: Yard) -> None:
    shutil.rmtree(yard.house.state.repos)


def no_state(yard: Yard) -> None:
    shutil.rmtree(yard.house.state.root)


def no_commit(yard: Yard) -> None:
    yard.commit = "1" * 40


@pytest.mark.parametrize("gone", [no_workspace, no_worktrees, no_repository, no_state, no_commit])
def test_what_is_gone_is_not_made_anew_and_does_no_harm(
    yard: Yard, gone: Callable[[Yard], None], caplog: pytest.LogCaptureFixture
) -> None:
    gone(yard)
    before = sorted(yard.house.state.root.rglob("*"))
    caplog.set_level("INFO")
    preparation = Preparation()
    preparation.ask(yard.ahead.line())
    preparation.ask(replace(yard.ahead, workspace="/nowhere").line())
    until(lambda: "/nowhere does not exist" in caplog.text)  # and so it is done with the first
    preparation.stop()
    assert sorted(yard.house.state.root.rglob("*")) == before


def test_a_session_that_ends_does_not_wait_for_it(yard: Yard) -> None:
    yard.spare.prepare(yard.ahead)
    until(yard.started.exists)
    runner = yard.process
    yard.spare.close()
    assert runner.returncode == 0
    yard.let_on()
