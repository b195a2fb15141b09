"""The power goes at any moment of a whole run: what is found afterwards is recovered and brought to its end.

State folder and workspace are copied after every commit of the ledger and at every step of the apply. Each
copy is what a machine would find that lost its power there.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import pytest

from baton.contract.base import parse
from baton.contract.session import Session
from baton.contract.task import BatchCall
from baton.engine import integrate
from baton.engine.admission import admit, record
from baton.engine.context import open_run
from baton.engine.house import House
from baton.engine.life import live
from baton.engine.owner import Ownership
from baton.engine.recover import recover_all
from baton.engine.stop import Stop
from baton.ledger.database import Database
from baton.simulate.model_server import ScriptedModel
from baton.workspace.apply import apply
from chaos._kill import PROJECT, Kill
from chaos._machine import Files, Machine, throw_away_folder
from real_codex import real_codex

pytestmark = pytest.mark.codex


class Copies:
    """A machine as it was at each moment of a run."""

    def __init__(self, folder: Path) -> None:
        self.machine_root, self.kept = folder / "machine", folder / "copies"
        self.kept.mkdir(parents=True)
        self.taken: list[Path] = []

    def take(self, moment: str) -> None:
        copy = self.kept / f"{len(self.taken):03}-{moment.replace(' ', '-')}"
        # By another process: closing a database file that SQLite has open would drop its locks.
        subprocess.run(["cp", "-a", self.machine_root, copy], check=True)
        self.taken.append(copy)

    def go_back_to(self, copy: Path) -> None:
        shutil.rmtree(self.machine_root)
        copy.rename(self.machine_root)


@contextlib.contextmanager
def watched(moment: Callable[[str], None]) -> Iterator[None]:
    """Calls `moment` after every commit and at every step of an apply."""
    transaction = Database.transaction

    @contextlib.contextmanager
    def committing(self: Database, **options: Any) -> Iterator[Any]:
        outermost = self._depth == 0
        with transaction(self, **options) as db:
            yield db
        if outermost:
            moment("commit")

    def stepping(*args: Any, **kwargs: Any) -> Any:
        return apply(*args, **kwargs, step=moment)

    with (
        mock.patch.object(Database, "transaction", committing),
        mock.patch.object(integrate, "apply", stepping),
    ):
        yield


async def run_once(machine: Machine, call: dict[str, object], moment: Callable[[str], None]) -> str:
    """One run, from its admission to its rest, in this process; its id."""
    with House.open(machine.env) as house:
        admitted = await admit(house, parse(BatchCall, call, "delegate_tasks"), Session())
        run_id = admitted.run.run_id
        owner = Ownership(house.state)
        owner.take(run_id)
        try:
            with watched(moment):
                record(house, admitted)
                ctx = await open_run(house, run_id, Stop())
                try:
                    await live(ctx)
                finally:
                    await ctx.close()
        finally:
            owner.close()
    return run_id


@contextlib.contextmanager
def copied_run() -> Iterator[tuple[Copies, Kill, str, Files]]:
    """A run that was copied at every moment, the judge of it, its id, and the workspace before."""
    with throw_away_folder("p-") as folder, ScriptedModel() as model:
        copies = Copies(folder)
        machine = Machine(copies.machine_root, model.port, real_codex())
        workspace = machine.workspace(copies.machine_root / "work", PROJECT)
        judge = Kill(machine, model, workspace, 1, "power")
        judge.outcome.moment = "power loss"
        old = judge.prepare()
        run_id = anyio.run(run_once, machine, judge.call(), copies.take)
        yield copies, judge, run_id, old


def recovered(copies: Copies, judge: Kill, run_id: str, old: Files, copy: Path, *, resume: bool) -> list[str]:
    """What is wrong once this copy has been found by the next start."""
    outcome = judge.outcome
    outcome.lost, outcome.orphans, outcome.stuck = [], [], []
    copies.go_back_to(copy)
    with judge.machine.service() as service:
        recover_all(service.house)
        run = service.house.ledger.run(run_id)
        if not run.state.at_rest:
            outcome.stuck.append(f"it is {run.state} after recovery: {run.note}")
        judge.look(service, run, old)
        if resume:
            judge.resume(service, run_id, old)
    return [f"{copy.name}: {fault}" for fault in (*outcome.lost, *outcome.orphans, *outcome.stuck)]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_whatever_a_power_loss_leaves_is_old_or_new_and_nothing_captured_is_lost() -> None:
    with copied_run() as (copies, judge, run_id, old):
        assert len(copies.taken) > 40
        some = copies.taken[::6]
        faults = [recovered(copies, judge, run_id, old, copy, resume=copy is some[3]) for copy in some]
    assert [fault for found in faults for fault in found] == []


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_run_is_resumed_to_the_same_end_after_a_power_loss_at_any_moment() -> None:
    with copied_run() as (copies, judge, run_id, old):
        faults = [recovered(copies, judge, run_id, old, copy, resume=True) for copy in copies.taken]
    assert [fault for found in faults for fault in found] == []
