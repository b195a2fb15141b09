"""A session that had a run has the next one carried by a runner that was ready for it, worktrees and all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from baton.contract.base import parse
from baton.contract.session import Session
from baton.contract.task import TaskCall
from baton.engine.house import House
from baton.engine.launch import runner_log
from baton.engine.private import open_repository
from baton.engine.service import Service
from baton.ledger.locks import is_held
from baton.ledger.records import RunRecord
from baton.simulate.workers import honest
from baton.workspace import warm
from baton.workspace.pool import WorktreePool
from baton.workspace.watcher import Watcher
from e2e.sim import DEADLINE, Sim, Workspace

pytestmark = pytest.mark.codex


@dataclass
class Seat:
    """One session that keeps a spare runner."""

    sim: Sim
    service: Service
    runners: list[int] = field(default_factory=list)

    def run(self, place: Workspace, content: str) -> RunRecord:
        """Have a worker write the file `a`; the run, which was applied."""
        arguments = {
            "objective": self.sim.script(f"{place.path.name} {content}", *honest({"a": f"{content}\n"})),
            "allowedFiles": ["a"],
            "verificationCommands": ["true"],
            "workspace": str(place.path),
        }
        call = parse(TaskCall, arguments, "delegate_task")
        answer = anyio.run(self.service.delegate_task, call, Session())
        assert answer["integration"] == "applied", answer
        assert place.read("a") == f"{content}\n"
        recorded = self.service.house.ledger.processes(answer["runId"], open_only=False)
        self.runners.append(next(one.pid for one in recorded if one.kind == "runner"))
        return self.service.house.ledger.run(answer["runId"])

    @property
    def spare(self) -> int:
        assert self.service.spare is not None and self.service.spare._waiting is not None
        return self.service.spare._waiting[0].pid

    def await_ready(self, run: RunRecord) -> None:
        """Until the spare runner watches a worktree of the run's and has let go of it."""
        locks = [self.service.house.state.locks / f"worktree-{name}.lock" for name in names(self, run)]
        until(lambda: watchers(self.spare) == 1 and not any(map(is_held, locks)))

    def first_look(self, run: RunRecord) -> str:
        """What the runner says of the first worktree that it leased."""
        lines = runner_log(self.service.house, run.run_id).read_text().splitlines()
        return next(line.rpartition(": ")[2] for line in lines if "DEBUG worktree" in line)


def names(seat: Seat, run: RunRecord) -> tuple[str, ...]:
    return open_repository(seat.service.house, run).list_worktrees()


def until(reached: Callable[[], object]) -> None:
    late = time.monotonic() + DEADLINE
    while not reached():
        assert time.monotonic() < late
        time.sleep(0.02)


def watchers(pid: int) -> int:
    """How many of the system's instances a process has."""
    found = []
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(handle.readlink()))
        except FileNotFoundError:
            continue
    return found.count("anon_inode:inotify")


@pytest.fixture
def seat(sim: Sim, tmp_path: Path) -> Iterator[Seat]:
    probe = Watcher.of(tmp_path, [])
    if probe is None:
        pytest.skip("this system does not report what is written")
    probe.close()
    service = Service(House.open({**sim.env, "BATON_LOG": "debug"}), keeps_spare=True)
    yield Seat(sim, service)
    service.close()


def test_the_second_run_is_carried_by_the_spare_runner(sim: Sim) -> None:
    place = sim.workspace("spare", {"a": ""})
    seat = Seat(sim, Service(House.open(sim.env), keeps_spare=True))
    try:
        seat.run(place, "1")
        spare = seat.spare
        seat.run(place, "2")
    finally:
        seat.service.close()
    assert seat.runners[1] == spare != seat.runners[0]


def test_its_worktrees_have_been_looked_at_before_it_came(seat: Seat) -> None:
    place = seat.sim.workspace("ready", {"a": ""})
    seat.await_ready(seat.run(place, "1"))
    assert seat.first_look(seat.run(place, "2")) == "as known"


def test_they_are_looked_at_again_when_another_process_had_them_meanwhile(seat: Seat) -> None:
    place = seat.sim.workspace("meanwhile", {"a": ""})
    run = seat.run(place, "1")
    seat.await_ready(run)
    repo = open_repository(seat.service.house, run)
    lease = WorktreePool(repo, seat.service.house.state).lease(lease_commit(seat, run))
    warm.forget(lease.worktree)
    lease.give_back()  # just as it was
    assert seat.first_look(seat.run(place, "2")) == "looked at in full"


def lease_commit(seat: Seat, run: RunRecord) -> str:
    merged = seat.service.house.ledger.integrations(run.run_id)[-1].merged_commit
    assert merged is not None
    return merged


def test_a_spare_that_is_ready_for_one_repository_carries_a_run_in_another(seat: Seat) -> None:
    first, second = (seat.sim.workspace(name, {"a": ""}) for name in ("one", "other"))
    seat.await_ready(seat.run(first, "1"))
    spare = seat.spare
    run = seat.run(second, "2")
    assert seat.runners[1] == spare
    seat.await_ready(run)
    assert seat.first_look(seat.run(second, "3")) == "as known"
    assert first.read("a") == "1\n"
