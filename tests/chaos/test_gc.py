"""`baton gc` removes all of what has had its time, and nothing that anybody may still want."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

from baton.cli.main import baton
from baton.contract.calls import ControlAction, ControlCall
from baton.contract.errors import Busy
from baton.contract.session import Session
from baton.contract.states import Integration
from baton.engine.collect import Collected, collect
from baton.engine.context import RunContext
from baton.engine.house import House
from baton.engine.steer import steer
from baton.ledger.locks import FileLock
from baton.workspace.git import Git
from baton.workspace.pool import WorktreePool, reserved_by
from baton.workspace.reopen import reopen
from chaos._machine import Machine, one_machine
from chaos._scripted import land, with_result

FILES = {"a.txt": "old\n", "notes.txt": "mine\n"}


@pytest.fixture
def machine() -> Iterator[Machine]:
    with one_machine(Path("codex-is-not-used")) as (made, _):
        yield made


@pytest.fixture
def workspace(machine: Machine) -> Path:
    return machine.workspace(machine.root / "work", FILES)


@pytest.fixture
def house(machine: Machine) -> Iterator[House]:
    with House.open(machine.env) as opened:
        yield opened


def landed(house: House, workspace: Path, text: str = "new\n") -> RunContext:
    """A run whose result has been applied."""
    ctx = with_result(house, workspace, lambda root: (root / "a.txt").write_text(text))
    ctx.keep("report", b"what the worker said " + text.encode())
    assert anyio.run(land, ctx) is Integration.APPLIED
    return ctx


def pins(machine: Machine, workspace: Path) -> list[str]:
    return machine.git(workspace, "for-each-ref", "--format=%(refname)", "refs/baton").split()


def ids(entries: list) -> list[str]:
    return [entry.run.run_id for entry in entries]


def everything_named(root: Path, run_id: str) -> list[str]:
    return [str(path) for path in root.rglob(f"*{run_id}*")]


def test_a_run_that_goes_leaves_nothing_of_itself(machine: Machine, workspace: Path, house: House) -> None:
    run_id = landed(house, workspace).run_id
    assert everything_named(machine.root, run_id) != []
    assert pins(machine, workspace) == [f"refs/baton/pin/{run_id}"]
    done = collect(house, days=0)
    assert (ids(done.removed), done.kept, done.faults) == ([run_id], [], [])
    assert house.ledger.runs(-1) == []
    assert everything_named(machine.root, run_id) == []
    assert pins(machine, workspace) == []
    assert (workspace / "a.txt").read_text() == "new\n"
    assert list((workspace / ".git").rglob("slots")) == []
    machine.git(workspace, "fsck", "--strict")


def test_a_dry_run_removes_nothing_and_says_what_would_go(workspace: Path, house: House) -> None:
    run_id = landed(house, workspace).run_id
    told = collect(house, days=0, dry_run=True)
    assert ids(told.removed) == [run_id]
    assert house.ledger.run(run_id).run_id == run_id
    assert ids(collect(house, days=0).removed) == [run_id]


def test_young_kept_and_owned_runs_stay_with_the_reason(
    machine: Machine, workspace: Path, house: House
) -> None:
    kept, owned, other = (landed(house, workspace, f"{number}\n").run_id for number in range(3))
    assert "gc" in steer(house, ControlCall(run_id=kept, action=ControlAction.KEEP), Session())
    with FileLock(house.state.owner_lock(owned), shared=True):
        done = collect(house, days=0)
    assert ids(done.removed) == [other]
    reasons = {entry.run.run_id: entry.why for entry in done.kept}
    assert "keep" in reasons[kept]
    assert "has it" in reasons[owned]
    assert sorted(pins(machine, workspace)) == sorted(f"refs/baton/pin/{name}" for name in (kept, owned))
    assert {entry.why for entry in collect(house).kept} == {
        "somebody asked to keep it",
        "younger than 14 days",
    }
    steer(house, ControlCall(run_id=kept, action=ControlAction.DISCARD), Session())
    assert sorted(ids(collect(house, days=0).removed)) == sorted([kept, owned])


def test_work_that_is_not_captured_is_never_removed(workspace: Path, house: House) -> None:
    ctx = landed(house, workspace)
    lease = WorktreePool(ctx.repo, house.state).lease(str(ctx.run.base_commit))
    lease.reserve(f"{ctx.run_id}/t1/2")
    (lease.worktree.cwd / "a.txt").write_text("not captured\n")
    lease.lock.release()
    house.ledger.start_attempt(
        house.ledger.attempt(ctx.run_id, "t1", 1).model_copy(update={"attempt": 2, "commit": None})
    )
    done = collect(house, days=0)
    assert done.removed == []
    assert "not captured" in done.kept[0].why
    assert (lease.worktree.cwd / "a.txt").read_text() == "not captured\n"
    assert reserved_by(lease.worktree) is not None


def test_idle_worktrees_go_and_used_ones_stay(workspace: Path, house: House) -> None:
    ctx = landed(house, workspace)
    pool = WorktreePool(ctx.repo, house.state)
    used, idle = pool.lease(str(ctx.run.base_commit)), pool.lease(str(ctx.run.base_commit))
    idle.give_back()
    done = collect(house, days=0)
    assert done.swept["idle worktrees"] == 1
    assert used.worktree.root.is_dir()
    assert not idle.worktree.root.exists()
    assert ctx.repo.list_worktrees() == (used.worktree.name,)
    used.give_back()


def test_results_go_also_when_the_persons_repository_is_gone(
    machine: Machine, workspace: Path, house: House
) -> None:
    ctx = landed(house, workspace)
    subprocess.run(["rm", "-rf", str(workspace)], check=True)
    done = collect(house, days=0)
    assert (ids(done.removed), done.faults) == ([ctx.run_id], [])
    collect(house, days=0)
    assert reopen(house.state, ctx.run.repo_key, Git.find(machine.env)) is None


def test_what_belongs_to_no_run_goes_after_a_day(house: House) -> None:
    state = house.state
    old = [
        state.scratch / "raaaaaaaa",
        state.root / "logs" / "raaaaaaaa.log",
        state.locks / "run-raaaaaaaa.lock",
    ]
    young, foreign = state.scratch / "rbbbbbbbb", state.scratch / "somebody-elses"
    for path in (*old, young, foreign):
        path.parent.mkdir(exist_ok=True)
        path.touch() if path.suffix else path.mkdir()
        if path is not young:
            os.utime(path, (time.time() - 2 * 86400,) * 2)
    lost = house.artifacts.put_bytes(b"nobody refers to it")
    os.utime(state.artifacts / lost[:2] / lost, (time.time() - 2 * 86400,) * 2)
    collect(house)
    assert [path for path in old if path.exists()] == []
    assert young.exists()
    assert foreign.exists()
    assert not house.artifacts.exists(lost)


def test_a_collection_that_was_cut_short_is_completed_by_the_next(
    workspace: Path, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = landed(house, workspace).run_id
    with monkeypatch.context() as patched:
        patched.setattr(type(house.ledger), "delete_run", _crash)
        with pytest.raises(KeyboardInterrupt):
            collect(house, days=0)
    assert house.ledger.run(run_id).run_id == run_id
    assert ids(collect(house, days=0).removed) == [run_id]


def test_only_one_collects_at_a_time(house: House) -> None:
    with FileLock(house.state.locks / "gc.lock"), pytest.raises(Busy, match="another"):
        collect(house)


def test_the_command_tells_what_went_and_what_stays(
    machine: Machine, workspace: Path, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = landed(house, workspace).run_id
    for name, value in machine.env.items():
        monkeypatch.setenv(name, value)
    told = CliRunner().invoke(baton, ["gc"])
    assert told.exit_code == 0
    assert f"kept {run_id}" in told.output
    told = CliRunner().invoke(baton, ["gc", "--days", "0", "--dry-run"])
    assert f"would remove {run_id}" in told.output
    told = CliRunner().invoke(baton, ["gc", "--days", "0", "--json"])
    assert f'"runId": "{run_id}"' in told.output
    assert house.ledger.runs(-1) == []


def _crash(*_: object) -> Collected:
    raise KeyboardInterrupt
