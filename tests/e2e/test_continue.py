"""One more turn for a finished task: the same thread and contract, from any session, landed or not."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from baton.contract.errors import InvalidInput, NotFound, WrongState
from baton.contract.session import Session
from baton.engine.service import Service
from baton.simulate.script import Step, stall
from baton.simulate.workers import report, write
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

SEED: dict[str, str | bytes] = {"src/a.txt": "one\n", "src/b.txt": "bee\n"}
CHECK = "grep -q two src/a.txt"


def _writes(path: str, content: str) -> tuple[Step, ...]:
    return (write(path, content), report(files=[path]))


@pytest.fixture
def folder(workspace: Callable[..., Workspace]) -> Workspace:
    return workspace(SEED)


Begin = Callable[..., dict[str, Any]]


@pytest.fixture
def begin(sim: Sim, folder: Workspace, request: pytest.FixtureRequest) -> Begin:
    """Delegate a task whose worker follows these steps, over all of its turns."""

    def delegate(*steps: Step, **more: Any) -> dict[str, Any]:
        objective = sim.script(request.node.name, *steps)
        call = {"objective": objective, "allowedFiles": ["src"], "workspace": str(folder.path)}
        return sim.delegate({**call, "verificationCommands": [CHECK], "waitSeconds": 100, **more})

    return delegate


def _told(sim: Sim, run_id: str) -> list[str]:
    """What the worker was told, turn by turn."""
    thread = sim.result(run_id).thread_id
    assert thread is not None
    requests = sim.model.requests_of(thread)
    return [request.text for request in requests]


def test_held_result_is_continued_in_its_thread_and_lands_as_one(
    sim: Sim, folder: Workspace, begin: Begin
) -> None:
    first = begin(
        write("src/a.txt", "not yet\n"),
        report(files=["src/a.txt"]),
        # The repair does not help either.
        report(files=["src/a.txt"]),
        *_writes("src/a.txt", "two\n"),
    )
    run_id = first["runId"]
    assert (first["state"], first["verdict"]) == ("held", "failed"), first
    thread = sim.result(run_id).thread_id
    answer = sim.go_on(run_id, "Write <the word> two.", verificationCommands=["test -s src/b.txt"])
    assert (answer["state"], answer["verdict"], answer["integration"]) == ("done", "verified", "applied")
    assert answer["evidence"]["checks"] == [f"passed: {CHECK}", "passed: test -s src/b.txt"]
    assert (folder.read("src/a.txt"), sim.result(run_id).thread_id) == ("two\n", thread)
    last = sim.attempts(run_id)[-1]
    assert (last.kind, last.base_commit) == ("continue", sim.attempts(run_id)[0].base_commit)
    assert "Write <the word> two." in _told(sim, run_id)[-1]
    assert "It holds the files as you left them." in _told(sim, run_id)[-1]
    spent = sim.model.answers_of(str(thread)) * sim.model.usage.total_tokens
    assert sim.result(run_id).usage.total_tokens == spent


def test_landed_result_is_continued_on_the_workspace_as_it_is_now(
    sim: Sim, folder: Workspace, begin: Begin
) -> None:
    first = begin(
        *_writes("src/a.txt", "two\n"),
        write("src/c.txt", "sees bee\n"),
        write("src/seen.txt", ""),
        report(files=["src/c.txt", "src/seen.txt"]),
    )
    assert first["integration"] == "applied"
    # The person goes on meanwhile, also with what the worker had written.
    folder.write("src/a.txt", "two, mended by hand\n")
    folder.write("mine.txt", "mine\n")
    answer = sim.go_on(first["runId"], "Add src/c.txt.")
    assert (answer["state"], answer["verdict"], answer["integration"]) == ("done", "verified", "applied")
    assert answer["evidence"]["changes"] == ["A src/c.txt", "A src/seen.txt"]
    assert folder.read("src/a.txt") == "two, mended by hand\n"
    assert (folder.read("src/c.txt"), folder.read("mine.txt")) == ("sees bee\n", "mine\n")
    assert "It holds the workspace as it is now" in _told(sim, first["runId"])[-1]


@pytest.fixture
def other_session(sim: Sim) -> Iterator[Service]:
    """A session of its own, as after a restart of everything: new processes' worth of state."""
    before = sim.service
    before.close()
    sim._services.remove(before)
    sim.service = sim.new_service()
    yield sim.service


def test_another_session_continues_after_everything_was_closed(
    sim: Sim, folder: Workspace, begin: Begin, request: pytest.FixtureRequest
) -> None:
    first = begin(*_writes("src/a.txt", "one and a half\n"), report(), *_writes("src/a.txt", "two\n"))
    assert first["verdict"] == "failed"
    request.getfixturevalue("other_session")
    session = Session(cwd=str(folder.path), thread_id="00000000-0000-4000-8000-000000000001")
    answer = sim.go_on(first["runId"], "Once more.", session)
    assert (answer["verdict"], answer["integration"]) == ("verified", "applied")
    assert folder.read("src/a.txt") == "two\n"


def test_turn_that_was_asked_for_and_never_began_begins_when_the_run_is_resumed(
    sim: Sim, folder: Workspace, begin: Begin
) -> None:
    first = begin(*_writes("src/a.txt", "no\n"), report(), *_writes("src/a.txt", "two\n"))
    run_id = first["runId"]
    # Cancelled before the runner has got anywhere: the plan is there, the turn is not.
    assert sim.go_on(run_id, "Write two.", waitSeconds=0)["state"] in ("queued", "running")
    sim.control(run_id, "cancel")
    sim.control(run_id, "resume")
    answer = sim.wait(run_id)
    assert (answer["verdict"], folder.read("src/a.txt")) == ("verified", "two\n"), answer
    assert any("Write two." in text for text in _told(sim, run_id))


def test_tasks_that_waited_for_a_failed_one_run_after_it_was_continued(
    sim: Sim, folder: Workspace, request: pytest.FixtureRequest
) -> None:
    first = sim.script("first piece", *_writes("src/a.txt", "no\n"), report(), *_writes("src/a.txt", "two\n"))
    second = sim.script("second piece", *_writes("src/b.txt", "after two\n"))
    tasks = [
        {"id": "one", "objective": first, "allowedFiles": ["src/a.txt"], "verificationCommands": [CHECK]},
        {
            "id": "two",
            "objective": second,
            "allowedFiles": ["src/b.txt"],
            "dependsOn": ["one"],
            "verificationCommands": [CHECK],
        },
    ]
    run_id = sim.delegate({"workspace": str(folder.path), "tasks": tasks, "waitSeconds": 100})["runId"]
    assert [task.state for task in sim.service.house.ledger.tasks(run_id)] == ["done", "skipped"]
    with pytest.raises(InvalidInput, match="has several tasks; name one of one, two"):
        sim.go_on(run_id, "Once more.")
    sim.go_on(run_id, "Once more.", taskId="one")
    assert [task.verdict for task in sim.service.house.ledger.tasks(run_id)] == ["verified", "verified"]
    assert (folder.read("src/a.txt"), folder.read("src/b.txt")) == ("two\n", "after two\n")


def test_session_that_may_not_write_gets_its_turn_and_the_result_is_held(
    sim: Sim, folder: Workspace, begin: Begin
) -> None:
    first = begin(*_writes("src/a.txt", "no\n"), report(), *_writes("src/a.txt", "two\n"))
    entry = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}
    profile = {
        "sandboxCwd": folder.path.as_uri(),
        "permissionProfile": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": [entry]},
            "network": "restricted",
        },
    }
    answer = sim.go_on(first["runId"], "Once more.", Session(cwd=str(folder.path), profile=profile))
    assert (answer["state"], answer["verdict"], answer["integration"]) == ("held", "verified", "held")
    assert answer["integrationDetail"].startswith("the session that continued it may not write")
    assert folder.read("src/a.txt") == "one\n"


def test_what_cannot_be_continued_is_refused_in_one_line_and_changes_nothing(
    sim: Sim, folder: Workspace, begin: Begin
) -> None:
    first = begin(*_writes("src/a.txt", "no\n"), report())
    run_id = first["runId"]
    with pytest.raises(NotFound, match="has no task 'other'; it has t1"):
        sim.go_on(run_id, "More.", taskId="other")
    with pytest.raises(NotFound, match="run 'rnone'"):
        sim.go_on("rnone", "More.")
    with pytest.raises(InvalidInput, match="only a shell understands"):
        sim.go_on(run_id, "More.", verificationCommands=["a && b"])
    sim.control(run_id, "discard")
    with pytest.raises(WrongState, match="was discarded; delegate it anew"):
        sim.go_on(run_id, "More.")
    assert len(sim.attempts(run_id)) == 2
    tasks = [
        {"id": "a", "objective": sim.script("says nothing", report()), "allowedFiles": ["src"]},
        {"id": "b", "objective": "<never>", "allowedFiles": ["src"], "dependsOn": ["a"]},
    ]
    never = sim.delegate({"tasks": tasks, "workspace": str(folder.path), "waitSeconds": 100})
    with pytest.raises(WrongState, match=r"task b of run .* has no worker's thread to continue"):
        sim.go_on(never["runId"], "More.", taskId="b")


def test_run_at_work_is_refused(sim: Sim, folder: Workspace, begin: Begin) -> None:
    going = threading.Event()
    begun = begin(stall(going), *_writes("src/a.txt", "two\n"), waitSeconds=0)
    with pytest.raises(WrongState, match="wait_run until it rests, then continue"):
        sim.go_on(begun["runId"], "More.")
    going.set()
    assert sim.wait(begun["runId"])["verdict"] == "verified"


def test_no_worker_was_asked_more_than_its_script_says(sim: Sim) -> None:
    assert sim.model.surprises == (), json.dumps([str(one) for one in sim.model.surprises])
