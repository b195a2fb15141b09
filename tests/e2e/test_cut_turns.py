"""Turns that do not come to their own end: told apart, followed up once, and what was done is kept."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from baton.contract.states import FailureClass, Integration, RunState, Verdict
from baton.policy.ladder import TABLE
from baton.simulate import script, workers
from baton.simulate.script import Step, shell
from baton.simulate.workers import report
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

Make = Callable[..., Workspace]
Delegate = Callable[..., dict[str, Any]]

HALF = shell("echo half > src/half.txt")
DONE = report(files=["src/half.txt"])
CHECK = "test -f src/half.txt"


def _task(workspace: Workspace, objective: str, **more: Any) -> dict[str, Any]:
    return {
        "workspace": str(workspace.path),
        "objective": objective,
        "allowedFiles": ["src/"],
        "verificationCommands": [CHECK],
        "waitSeconds": 100,
        **more,
    }


def test_a_worker_that_falls_silent_is_ended_asked_once_more_and_kept(
    sim: Sim, workspace: Make, delegate: Delegate
) -> None:
    place = workspace({"src/a": "a\n"})
    objective = sim.script("silent", HALF, script.stall(), script.stall())
    with sim.policy("[deadlines]\nidle_seconds = 1.5\n"):
        answer = delegate(_task(place, objective))
    _failed_and_kept(sim, place, answer, FailureClass.IDLE_TIMEOUT, attempts=2)


def test_a_worker_that_was_only_slow_once_finishes_in_the_same_thread(
    sim: Sim, workspace: Make, delegate: Delegate
) -> None:
    place = workspace({"src/a": "a\n"})
    objective = sim.script("slow once", HALF, script.stall(), DONE)
    with sim.policy("[deadlines]\nidle_seconds = 1.5\n"):
        answer = delegate(_task(place, objective))
    assert (answer["verdict"], answer["integration"], answer["attempts"]) == ("verified", "applied", 2)
    first, second = sim.attempts(answer["runId"])
    assert first.thread_id == second.thread_id
    assert place.read("src/half.txt") == "half\n"


@pytest.mark.long
def test_a_task_that_takes_too_long_is_ended_by_its_own_deadline(
    sim: Sim, workspace: Make, delegate: Delegate
) -> None:
    place = workspace({"src/a": "a\n"})
    objective = sim.script("too long", HALF, script.stall(), script.stall())
    answer = delegate(_task(place, objective, timeoutSeconds=2))
    _failed_and_kept(sim, place, answer, FailureClass.TURN_TIMEOUT, attempts=2)


def test_a_run_whose_time_is_over_stops_with_its_reason_and_is_resumed(sim: Sim, workspace: Make) -> None:
    place = workspace({"src/a": "a\n"})
    objective = sim.script("run out of time", HALF, script.stall(), DONE)
    with sim.policy("[deadlines]\nrun_seconds = 7\n[escalation]\nmax_steps = 3\n"):
        answer = sim.delegate(_task(place, objective))
    assert (answer["state"], answer["verdict"]) == ("interrupted", "interrupted")
    assert answer["decision"] == "run_timeout: stop: the run's time is over"
    assert answer["note"] == "the run took longer than 7 s (deadlines.run_seconds)"
    (attempt,) = sim.attempts(answer["runId"])
    assert attempt.result is not None and attempt.result.evidence.turn_failure is None
    assert sim.kept(answer["runId"], "src/half.txt") == b"half\n"
    sim.control(answer["runId"], "resume")
    assert sim.wait(answer["runId"])["verdict"] == "verified"
    assert place.read("src/half.txt") == "half\n"


@pytest.mark.parametrize("crashes", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_crash_of_codex_is_survived_once(sim: Sim, workspace: Make, crashes: int) -> None:
    place = workspace({"src/a": "a\n"})
    killed: list[int] = []

    def crash(_: object) -> Step:
        if len(killed) == crashes:
            return DONE
        killed.append(_kill_codex(sim, objective))
        return script.stall()

    objective = sim.script(f"crash {crashes}", HALF, crash)
    answer = sim.delegate(_task(place, objective))
    assert len(killed) == crashes
    if crashes == 2:
        _failed_and_kept(sim, place, answer, FailureClass.CRASH, attempts=2)
        return
    assert (answer["verdict"], answer["integration"], answer["attempts"]) == ("verified", "applied", 2)
    assert place.read("src/half.txt") == "half\n"
    first = sim.attempts(answer["runId"])[0].result
    assert first is not None and first.evidence.turn_failure is not None
    assert first.evidence.turn_failure.failure_class is FailureClass.CRASH
    assert [change.path for change in first.evidence.changes] == ["src/half.txt"]


def test_a_network_that_is_gone_fails_the_turn_and_not_the_patience(
    sim: Sim, workspace: Make, delegate: Delegate
) -> None:
    place = workspace({"src/a": "a\n"})
    with _closed_port() as port:
        sim.provider(port)
        try:
            answer = delegate(_task(place, "<no network>"))
        finally:
            sim.provider(sim.model.port)
    failure = sim.result(answer["runId"]).evidence.turn_failure
    assert answer["verdict"] == Verdict.FAILED
    assert failure is not None and failure.failure_class is FailureClass.NETWORK
    assert answer["evidence"]["changes"] == []


def test_another_model_than_asked_is_said_and_not_hidden(
    sim: Sim, workspace: Make, delegate: Delegate
) -> None:
    place = workspace({"src/a": "a\n"})
    objective = sim.script("rerouted", HALF, script.claiming("gpt-0-cheap", DONE))
    answer = delegate(_task(place, objective))
    assert answer["route"]["serverClaimed"] == "gpt-0-cheap"
    assert answer["route"]["asked"].startswith(sim.attempts(answer["runId"])[0].route.asked_model)  # type: ignore[union-attr]


def test_a_check_that_fails_on_a_claimed_pass_is_repaired_once_in_the_same_thread(
    sim: Sim, workspace: Make, delegate: Delegate
) -> None:
    place = workspace({"src/a": "a\n"})
    objective = sim.script("repair", shell("echo b > src/b"), DONE, HALF, DONE)
    answer = delegate(_task(place, objective))
    assert (answer["verdict"], answer["integration"], answer["attempts"]) == ("verified", "applied", 2)
    told = sim.model.wait_for(lambda request: objective in request.text and request.number == 2)
    assert CHECK in told.prompt
    answers = sim.model.answers_of(sim.result(answer["runId"]).thread_id or "")
    assert answer["usage"] == {
        "in": answers * sim.model.usage.input_tokens,
        "out": answers * sim.model.usage.output_tokens,
    }


def test_a_worker_that_never_mends_it_stays_failed(sim: Sim, workspace: Make, delegate: Delegate) -> None:
    place = workspace({"src/a": "a\n"})
    objective = sim.script("never mended", *workers.false_pass({"src/b": "b\n"}, [CHECK]))
    answer = delegate(_task(place, objective))
    assert (answer["verdict"], answer["state"], answer["attempts"]) == ("failed", "held", 2)
    assert not (place.path / "src/b").exists()


def _failed_and_kept(
    sim: Sim, place: Workspace, answer: dict[str, Any], failure: FailureClass, *, attempts: int
) -> None:
    result = sim.result(answer["runId"])
    assert (answer["verdict"], answer["state"]) == (Verdict.FAILED, RunState.HELD)
    assert answer["attempts"] == attempts
    assert result.evidence.turn_failure is not None
    assert result.evidence.turn_failure.failure_class is failure
    assert answer["reasons"][0].startswith(f"the turn failed ({failure})")
    assert answer["decision"] == f"{failure}: stop: {TABLE[failure].why}"
    assert sim.kept(answer["runId"], "src/half.txt") == b"half\n"
    assert sim.task(answer["runId"]).outcome.integration is not Integration.APPLIED
    assert place.contents().keys() == {"src/a"}


def _kill_codex(sim: Sim, objective: str) -> int:
    """Kill the app-server of the run as a crash would."""
    run_id = sim.only_run(objective)
    recorded = sim.service.house.ledger.processes(run_id)
    guard = [process.pid for process in recorded if process.kind == "app-server"][-1]
    (codex,) = psutil.Process(guard).children()
    codex.kill()
    return codex.pid


@contextmanager
def _closed_port() -> Iterator[int]:
    """A port that nobody listens on and nobody else can take."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
