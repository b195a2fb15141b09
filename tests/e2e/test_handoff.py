"""A handoff packet: another session goes on from it alone."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from baton.simulate.workers import blocked, report, write
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex


@pytest.fixture
def folder(workspace: Callable[..., Workspace]) -> Workspace:
    return workspace({"a.txt": "seed\n", "b.txt": "seed\n", "c.txt": "seed\n"})


@pytest.fixture
def run_id(sim: Sim, folder: Workspace, request: pytest.FixtureRequest) -> str:
    name = request.node.name
    again = report(files=["a.txt"])
    tasks: list[dict[str, Any]] = [
        {
            "id": "half",
            "objective": sim.script(
                f"{name} half", write("a.txt", "half\n"), again, again, write("a.txt", "ok\n"), again
            ),
            "allowedFiles": ["a.txt"],
            "verificationCommands": ["grep -q ok a.txt"],
            "acceptanceCriteria": ["a.txt says ok"],
        },
        {
            "id": "whole",
            "objective": sim.script(f"{name} whole", write("b.txt", "ok\n"), report(files=["b.txt"])),
            "allowedFiles": ["b.txt"],
            "verificationCommands": ["grep -q ok b.txt"],
        },
        {
            "id": "stuck",
            "objective": sim.script(f"{name} stuck", *blocked("Which colour?")),
            "allowedFiles": ["c.txt"],
        },
        {"id": "later", "objective": "<later>", "allowedFiles": ["c.txt"], "dependsOn": ["stuck"]},
    ]
    answer = sim.delegate({"workspace": str(folder.path), "tasks": tasks, "waitSeconds": 100})
    return str(answer["runId"])


def test_packet_says_what_was_asked_what_is_there_and_what_is_open(
    sim: Sim, folder: Workspace, run_id: str
) -> None:
    packet = sim.inspect(run_id, "handoff")
    assert len(json.dumps(packet)) <= 8_192
    assert (packet["state"], packet["workspace"]) == ("held", str(folder.path))
    tasks = {task["taskId"]: task for task in packet["tasks"]}
    half = tasks["half"]
    assert half["checks"] == ["grep -q ok a.txt"] and half["acceptanceCriteria"] == ["a.txt says ok"]
    assert half["attempts"] == ["first: failed", "repair: failed"]
    assert half["evidence"]["changes"] == ["M a.txt"]
    assert (
        half["open"]
        == "a change is kept: control_run integrate or discard, or continue_task with what is missing"
    )
    assert tasks["whole"]["open"] == "nothing: it landed"
    assert "Which colour?" in tasks["stuck"]["reasons"]
    assert tasks["stuck"]["open"].startswith("nothing is kept: continue_task")
    assert tasks["later"]["dependsOn"] == ["stuck"]
    assert tasks["later"]["open"] == "nothing is kept: delegate it anew, or leave it"


def test_another_session_fetches_and_finishes_from_the_packet_alone(
    sim: Sim, folder: Workspace, run_id: str
) -> None:
    sim.service = sim.new_service()
    packet = sim.inspect(run_id, "handoff")
    half = next(task for task in packet["tasks"] if task["taskId"] == "half")
    folder.git(*shlex.split(half["fetch"])[1:])
    assert folder.git("show", "FETCH_HEAD:a.txt") == "half\n"
    sim.go_on(packet["runId"], "Write ok.", taskId="half")
    assert folder.read("a.txt") == "ok\n"
    after = sim.inspect(run_id, "handoff")
    assert next(task for task in after["tasks"] if task["taskId"] == "half")["open"] == "nothing: it landed"
