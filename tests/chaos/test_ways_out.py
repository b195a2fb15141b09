"""A run that cannot be recovered now is told of in one line, and cancelling it is always possible."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.contract.calls import ControlAction, ControlCall
from baton.contract.errors import BatonError, StateUnavailable
from baton.contract.session import Session
from baton.contract.states import Integration, RunState, TaskState, Verdict
from baton.engine.house import House
from baton.engine.recover import recover_all
from baton.engine.steer import steer
from baton.ledger.records import AttemptRecord
from baton.workspace.apply import apply
from baton.workspace.journal_place import new_journal
from baton.workspace.pool import WorktreePool, reserved_by
from chaos._machine import Machine, one_machine, wait_run
from chaos._scripted import TASK, with_result

FILES = {"a.txt": "old\n"}


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


def control(house: House, run_id: str, action: ControlAction) -> str:
    return steer(house, ControlCall(run_id=run_id, action=action), Session())


def test_a_run_whose_workspace_is_gone_waits_for_it_and_can_be_given_up(
    house: House, workspace: Path
) -> None:
    ctx = with_result(house, workspace, lambda root: (root / "a.txt").write_text("new\n"))
    lease = WorktreePool(ctx.repo, house.state).lease(str(ctx.run.base_commit))
    lease.reserve(f"{ctx.run_id}/{TASK}/2")
    lease.lock.release()
    attempt = AttemptRecord(run_id=ctx.run_id, task_id=TASK, attempt=2, base_commit=ctx.run.base_commit)
    house.ledger.start_attempt(attempt)
    house.ledger.update_task(ctx.run_id, TASK, state=TaskState.WORKING)
    away = workspace.with_name("away")
    workspace.rename(away)
    assert recover_all(house) == []
    run = house.ledger.run(ctx.run_id)
    assert (run.state, run.note) == (
        RunState.RUNNING,
        f"not recovered yet: workspace {workspace} does not exist",
    )
    with pytest.raises(BatonError, match="does not exist"):
        control(house, ctx.run_id, ControlAction.RESUME)

    away.rename(workspace)
    assert recover_all(house) == [ctx.run_id]
    assert house.ledger.run(ctx.run_id).state is RunState.INTERRUPTED
    assert house.ledger.attempt(ctx.run_id, TASK, 2).commit is not None


@pytest.mark.timeout(120)
@pytest.mark.parametrize("noted", [True, False])
def test_whoever_waits_for_a_run_that_cannot_be_recovered_is_told_why_at_once(
    machine: Machine, house: House, workspace: Path, monkeypatch: pytest.MonkeyPatch, noted: bool
) -> None:
    ctx = with_result(house, workspace, lambda root: (root / "a.txt").write_text("new\n"))
    house.ledger.update_task(ctx.run_id, TASK, state=TaskState.WORKING)
    shutil.rmtree(workspace)
    with machine.service() as service:
        if not noted:

            def full(*_: object, **__: object) -> None:
                raise StateUnavailable("the disk is full")

            monkeypatch.setattr(service.house.ledger, "update_run", full)
        answer = wait_run(service, ctx.run_id, seconds=280)
    assert answer["state"] == "running" and answer["next"].startswith("have what the note says mended")
    assert answer["note"] == f"not recovered yet: workspace {workspace} does not exist"


def test_giving_up_leaves_uncaptured_work_where_it_is(house: House, workspace: Path) -> None:
    ctx = with_result(house, workspace, lambda root: (root / "a.txt").write_text("new\n"))
    house.ledger.update_task(ctx.run_id, TASK, state=TaskState.WORKING)
    lease = WorktreePool(ctx.repo, house.state).lease(str(ctx.run.base_commit))
    lease.reserve(f"{ctx.run_id}/{TASK}/2")
    lease.lock.release()
    shutil.rmtree(workspace)
    for _ in range(2):
        assert "cancelled" in control(house, ctx.run_id, ControlAction.CANCEL)
        assert house.ledger.run(ctx.run_id).state is RunState.CANCELLED
    assert house.ledger.task(ctx.run_id, TASK).verdict is Verdict.CANCELLED
    assert reserved_by(lease.worktree) is not None


def test_a_result_that_landed_before_its_runner_died_is_known_to_have_landed(
    house: House, workspace: Path
) -> None:
    ctx = with_result(house, workspace, lambda root: (root / "a.txt").write_text("new\n"))
    record = house.ledger.start_integration(ctx.run_id, [TASK])
    onto = ctx.repo.snapshot(ctx.ref("merge", "1-onto"))
    journal = new_journal(workspace, ctx.site.common_dir, ctx.run_id)
    house.ledger.update_integration(ctx.run_id, record.number, step="applying", journal=str(journal))
    result = house.ledger.task(ctx.run_id, TASK).result
    assert result is not None
    assert result.evidence.tree is not None
    changes = ctx.repo.changes(onto.tree, result.evidence.tree)
    blobs = {change.new_oid: ctx.repo.read_blobs([change.new_oid])[0] for change in changes}
    apply(workspace, changes, _Blobs(blobs), journal)
    # Afterwards the person goes on in the same file: it still has landed, and is not brought in again.
    (workspace / "a.txt").write_text("new and mine\n")
    assert recover_all(house) == [ctx.run_id]
    assert house.ledger.task(ctx.run_id, TASK).outcome.integration is Integration.APPLIED
    assert house.ledger.run(ctx.run_id).state is RunState.DONE
    assert (workspace / "a.txt").read_text() == "new and mine\n"


class _Blobs:
    def __init__(self, known: dict[str, bytes | None]) -> None:
        self.known = known

    def read(self, oid: str) -> bytes:
        content = self.known[oid]
        assert content is not None
        return content
