"""A limit that one worker meets holds for all: nobody asks before the service said, in no run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from baton.simulate.request import Request
from baton.simulate.script import FailStream, Step
from baton.simulate.workers import report, write
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

Make = Callable[..., Workspace]

DONE = (write("a.txt", "right\n"), report(files=["a.txt"]))


def _limited(wait: str) -> FailStream:
    """A limit whose stated wait Codex passes on; of an HTTP 429 it says only that there was one."""
    return FailStream("rate_limit_exceeded", f"Rate limit reached. Please try again in {wait}.", times=1)


def _task(place: Workspace, objective: str, **more: Any) -> dict[str, Any]:
    return {"workspace": str(place.path), "objective": objective, "allowedFiles": ["a.txt"], **more}


def test_another_run_waits_for_the_end_of_the_pause(sim: Sim, workspace: Make) -> None:
    asked: list[float] = []

    def first(_: Request) -> Step:
        asked.append(time.time())
        return DONE[0]

    limited = _task(workspace({"a.txt": "a\n"}), sim.script("limited", _limited("6s")))
    waiting = _task(workspace({"a.txt": "a\n"}), sim.script("waiting", first, DONE[1]))
    other = _task(workspace({"a.txt": "a\n"}), sim.script("other model", *DONE), tier="terra")
    with sim.policy("[escalation]\nmax_steps = 0\nmax_waits = 0\n"):
        ended = sim.delegate({**limited, "waitSeconds": 100})
        pause = sim.service.house.ledger.model_pause(ended["route"]["model"])
        assert pause is not None
        answers = [sim.start({**call, "waitSeconds": 100}) for call in (waiting, other)]
        held, free = [answer.result(120) for answer in answers]
    assert ended["decision"].startswith("rate_limit: stop: the service limits the rate of requests")
    assert [answer["verdict"] for answer in (held, free)] == ["unverified", "unverified"]
    assert asked[0] >= pause.until
    (told,) = sim.service.house.ledger.events_of(held["runId"], ["task.paused"])
    assert told.data["model"] == pause.model
    assert sim.service.house.ledger.events_of(free["runId"], ["task.paused"]) == []


def test_longer_pause_than_a_task_may_wait_ends_the_others_unasked_until_somebody_resumes(
    sim: Sim, workspace: Make
) -> None:
    place = workspace({"a.txt": "a\n", "b.txt": "b\n"})
    first = sim.script("limited for long", _limited("1h"), *DONE)
    second = sim.script("held back", write("b.txt", "right\n"), report(files=["b.txt"]))
    tasks = [
        {"id": "one", "objective": first, "allowedFiles": ["a.txt"], "verificationCommands": ["true"]},
        {"id": "two", "objective": second, "allowedFiles": ["b.txt"], "verificationCommands": ["true"]},
    ]
    call = {"workspace": str(place.path), "tasks": tasks, "maxParallel": 1, "waitSeconds": 100}
    with sim.policy("[escalation]\nmax_steps = 0\nmax_waits = 3\nwait_seconds = 0.5\n"):
        run_id = sim.delegate(call)["runId"]
    assert sim.run(run_id).state == "interrupted"
    decision = sim.result(run_id, "one").decision
    assert decision is not None and decision.why.endswith("; come back in 1 h")
    held = sim.task(run_id, "two")
    assert (held.verdict, sim.attempts(run_id, "two")) == ("interrupted", [])
    assert "longer than escalation.wait_seconds; not asked until then" in held.reasons[0]
    # Who resumes knows better, and asks.
    sim.control(run_id, "resume")
    sim.wait(run_id)
    assert (sim.task(run_id, "two").verdict, place.read("b.txt")) == ("verified", "right\n")


def test_waiting_ends_when_the_run_is_cancelled(sim: Sim, workspace: Make) -> None:
    house = sim.service.house
    call = _task(workspace({"a.txt": "a\n"}), sim.script("cancelled while paused", *DONE), tier="sol")
    model = sim.delegate({**call, "dryRun": True})["tasks"][0]["model"]
    house.ledger.pause_model(model, time.time() + 80, "the service limits the rate of requests")
    run_id = sim.delegate({**call, "waitSeconds": 0})["runId"]
    version = house.ledger.data_version()
    while not house.ledger.events_of(run_id, ["task.paused"]):
        moved = house.ledger.wait_for_change(version, 30.0)
        assert moved != version, [event.kind for event in house.ledger.events(run_id)]
        version = moved
    sim.control(run_id, "cancel")
    assert sim.task(run_id).verdict == "cancelled"
    assert sim.attempts(run_id) == []
