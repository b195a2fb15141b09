"""Whatever ends a session or a runner in mid-run: work is captured, nothing is left, it goes on later."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import anyio
import pytest

from baton.contract.base import parse
from baton.contract.errors import BatonError
from baton.contract.session import Session
from baton.contract.states import Integration, RunState
from baton.contract.task import TaskCall
from baton.engine.house import House
from baton.engine.recover import recover_all
from baton.ledger.locks import is_held
from baton.ledger.store import Ledger
from baton.process.environment import RUN_MARKER
from baton.process.tree import processes_with_marker
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import stall
from baton.simulate.workers import report, write
from chaos._kill import parts_of
from chaos._machine import (
    Machine,
    control_run,
    end_session,
    one_machine,
    throw_away_folder,
    wait_run,
)
from real_codex import real_codex

pytestmark = [pytest.mark.codex, pytest.mark.long]

FILES = {"src/a.txt": "old\n", "notes.txt": "mine\n"}

DEADLINE = 60.0


@pytest.fixture(scope="module")
def lab() -> Iterator[tuple[Machine, ScriptedModel]]:
    with one_machine(real_codex()) as (machine, model):
        yield machine, model


@dataclass
class Paused:
    """A run whose worker has written its file and then waits."""

    machine: Machine
    workspace: Path
    session: BaseProcess
    run_id: str
    release: threading.Event

    @property
    def runner(self) -> int:
        return parts_of(self.run_id)["runner"][0]

    def at_rest(self) -> RunState:
        """The state of rest that the run comes to without anybody's help, its runner gone."""
        with House.open(self.machine.env) as house:
            until(lambda: house.ledger.run(self.run_id).state.at_rest)
            until(lambda: not is_held(house.state.run_lock(self.run_id)))
            until(lambda: not processes_with_marker(RUN_MARKER, self.run_id))
            return house.ledger.run(self.run_id).state

    def note(self) -> str:
        with House.open(self.machine.env) as house:
            return house.ledger.run(self.run_id).note or ""

    def integration(self) -> Integration | None:
        with House.open(self.machine.env) as house:
            return house.ledger.task(self.run_id, "t1").outcome.integration

    def kept(self) -> bool:
        """Whether what the worker had written is captured."""
        with House.open(self.machine.env) as house:
            result = house.ledger.task(self.run_id, "t1").result
        return result is not None and [change.path for change in result.evidence.changes] == ["src/a.txt"]

    def content(self) -> str:
        return (self.workspace / "src/a.txt").read_text()

    def resume(self) -> str:
        """Resume to the end; what the workspace then holds."""
        self.release.set()
        with self.machine.service() as service:
            control_run(service, self.run_id, "resume")
            wait_run(service, self.run_id)
        assert self.at_rest() is RunState.DONE
        return self.content()


@pytest.fixture
def paused(
    lab: tuple[Machine, ScriptedModel], request: pytest.FixtureRequest
) -> Iterator[Callable[..., Paused]]:
    machine, model = lab
    made: list[Paused] = []

    def pause(terminal: str | None = None, **options: object) -> Paused:
        objective = f"<{request.node.name} {len(made)}>"
        release = threading.Event()
        again = [write("src/a.txt", "new\n"), report()] * 3
        model.on(objective, write("src/a.txt", "new\n"), stall(release), report(), *again)
        workspace = machine.workspace(machine.root / "work" / f"w{time.monotonic_ns()}", FILES)
        task = {
            "objective": objective,
            "allowedFiles": ["src/"],
            "verificationCommands": ["test -f src/a.txt"],
        }
        call = {"tasks": [task], "workspace": str(workspace), "waitSeconds": 100, **options}
        session = machine.session(call, terminal)
        with House.open(machine.env) as house:
            run_id = the_run(house.ledger, objective)
        model.wait_for(lambda asked: objective in asked.text and bool(asked.outputs))
        made.append(Paused(machine, workspace, session, run_id, release))
        return made[-1]

    yield pause
    for run in made:
        run.release.set()
        end_session(run.session)
        run.session.join()


def the_run(ledger: Ledger, objective: str) -> str:
    found: list[str] = []

    def look() -> bool:
        found.extend(
            run.run_id
            for run in ledger.runs(20)
            if any(task.contract.objective == objective for task in ledger.tasks(run.run_id))
        )
        return bool(found)

    until(look)
    return found[0]


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


@pytest.mark.parametrize(
    "number",
    [signal.SIGHUP, *(pytest.param(n, marks=pytest.mark.long) for n in (signal.SIGINT, signal.SIGTERM))],
)
def test_a_signal_to_the_runner_stops_and_captures(
    paused: Callable[..., Paused], number: signal.Signals
) -> None:
    run = paused()
    os.kill(run.runner, number)
    assert run.at_rest() is RunState.INTERRUPTED
    assert number.name in run.note()
    assert run.kept()
    assert run.content() == "old\n"
    if number is signal.SIGHUP:
        assert run.resume() == "new\n"


def test_a_second_signal_forces_and_nothing_is_lost_by_it(paused: Callable[..., Paused]) -> None:
    run = paused()
    run.session.kill()
    os.kill(app := parts_of(run.run_id)["app-server"][0], signal.SIGSTOP)  # the first one takes its time
    runner = run.runner
    os.kill(runner, signal.SIGTERM)

    def is_forced() -> bool:
        # Two signals of one kind become one when the second comes before the first is taken.
        with contextlib.suppress(ProcessLookupError):
            os.kill(runner, signal.SIGTERM)
        return runner not in parts_of(run.run_id)["runner"]

    until(is_forced)
    with House.open(run.machine.env) as house:
        recover_all(house)
    assert run.at_rest() is RunState.INTERRUPTED
    assert app not in parts_of(run.run_id)["app-server"]
    assert run.kept()
    assert run.resume() == "new\n"


@pytest.mark.parametrize("how", ["killed", "terminal closed"])
def test_without_its_session_a_run_stops_and_is_kept(paused: Callable[..., Paused], how: str) -> None:
    if how == "killed":
        run = paused()
        run.session.kill()
    else:
        master, slave = os.openpty()
        run = paused(os.ttyname(slave))
        os.close(slave)
        os.close(master)
        run.session.join(DEADLINE)
        assert run.session.exitcode == -signal.SIGHUP
    assert run.at_rest() is RunState.INTERRUPTED
    assert "nobody waited" in run.note()
    assert run.kept()
    assert run.content() == "old\n"


def test_in_the_background_a_run_goes_on_without_its_session_and_ends_held(
    paused: Callable[..., Paused],
) -> None:
    run = paused(background=True)
    run.session.kill()
    run.session.join()
    run.release.set()
    assert run.at_rest() is RunState.HELD
    assert run.content() == "old\n"
    with run.machine.service() as service:
        control_run(service, run.run_id, "integrate")
    assert run.integration() is Integration.APPLIED
    assert run.content() == "new\n"


def test_a_new_session_that_waits_takes_the_run_over(paused: Callable[..., Paused]) -> None:
    run = paused()
    with run.machine.service() as service:
        assert wait_run(service, run.run_id, 0)["next"] == "wait_run"
        run.session.kill()
        run.session.join()
        # Longer than the grace time of an ownerless run.
        assert wait_run(service, run.run_id, 1)["state"] == "running"
        run.release.set()
        assert wait_run(service, run.run_id)["state"] == "done"
    assert run.content() == "new\n"


def test_a_client_that_waits_no_longer_loses_nothing(lab: tuple[Machine, ScriptedModel]) -> None:
    machine, model = lab
    release = threading.Event()
    model.on("<client time-out>", write("src/a.txt", "new\n"), stall(release), report())
    workspace = machine.workspace(machine.root / "work" / "time-out", FILES)
    call = parse(
        TaskCall,
        {
            "objective": "<client time-out>",
            "allowedFiles": ["src/"],
            "verificationCommands": ["test -f src/a.txt"],
            "workspace": str(workspace),
            "waitSeconds": 200,
        },
        "delegate_task",
    )
    with machine.service() as service:

        async def give_up() -> None:
            with anyio.move_on_after(1.0):
                await service.delegate_task(call, Session())

        anyio.run(give_up)
        run_id = the_run(service.house.ledger, "<client time-out>")
        release.set()
        assert wait_run(service, run_id)["state"] == "done"
    assert (workspace / "src/a.txt").read_text() == "new\n"


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own, so small that it can be filled."""
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> Path:
    """Fill the disk to its last byte; the file to remove again."""
    ballast = folder / f"ballast-{time.monotonic_ns()}"
    with ballast.open("wb", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return ballast


def test_a_disk_that_is_full_or_read_only_is_said_in_one_line_and_nothing_is_lost(
    lab: tuple[Machine, ScriptedModel],
) -> None:
    _, model = lab
    with throw_away_folder("d-") as root, small_disk(root / "disk", "24m") as disk:
        machine = Machine(root / "machine", model.port, real_codex(), state=disk / "state")
        workspace = machine.workspace(root / "work", FILES)
        release = threading.Event()
        again = [write("src/a.txt", "new\n"), report()] * 5
        model.on("<full disk>", write("src/a.txt", "new\n"), stall(release), report(), *again)
        task = {
            "objective": "<full disk>",
            "allowedFiles": ["src/"],
            "verificationCommands": ["test -f src/a.txt"],
        }
        session = machine.session({"tasks": [task], "workspace": str(workspace), "waitSeconds": 100})
        with House.open(machine.env) as house:
            run_id = the_run(house.ledger, "<full disk>")
            model.wait_for(lambda asked: "<full disk>" in asked.text and bool(asked.outputs))
            ballast = [fill(disk)]
            release.set()
            until(lambda: not is_held(house.state.run_lock(run_id)))
            end_session(session)
            session.join()
            assert (workspace / "src/a.txt").read_text() == "old\n"
            ballast.append(fill(disk))  # its end gave some space back
            with pytest.raises(BatonError) as refused:
                house.ledger.append_event(run_id, "note", data={"text": "x" * 2**24})
            assert "\n" not in refused.value.message
            assert "free some space" in refused.value.message
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with pytest.raises(BatonError) as refused:
            House.open(machine.env)
        assert "\n" not in refused.value.message
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        for file in ballast:
            file.unlink()
        with machine.service() as service:
            recover_all(service.house)
            assert service.house.ledger.run(run_id).state.at_rest
            if service.house.ledger.run(run_id).state is not RunState.DONE:
                control_run(service, run_id, "resume")
            assert wait_run(service, run_id)["state"] == "done"
        assert (workspace / "src/a.txt").read_text() == "new\n"
