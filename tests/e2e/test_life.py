"""A run beside a person who goes on working, and the decisions that are left to a session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from baton.contract.errors import InvalidInput, WrongState
from baton.contract.session import Session
from baton.contract.states import Integration, RunState, Verdict
from baton.simulate.request import Request
from baton.simulate.script import Step, shell, stall
from baton.simulate.workers import report
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

Make = Callable[..., Workspace]

LINES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
FIRST = shell("sed -i s/one/ONE/ src/lines.txt")


def task(place: Workspace, objective: str, **more: Any) -> dict[str, Any]:
    return {
        "workspace": str(place.path),
        "objective": objective,
        "allowedFiles": ["src/"],
        "verificationCommands": ["true"],
        "waitSeconds": 100,
        **more,
    }


@dataclass
class Paused:
    """A run whose worker has done its first step and waits for a word."""

    answer: Future[dict[str, Any]]
    release: threading.Event

    def finish(self) -> dict[str, Any]:
        self.release.set()
        return self.answer.result(100)


@pytest.fixture
def paused(sim: Sim) -> Callable[..., Paused]:
    """Start a task whose worker stops after its first step, so that the person can do something."""

    def start(place: Workspace, marker: str, step: Step, **more: Any) -> Paused:
        release = threading.Event()
        objective = sim.script(marker, step, stall(release), report(files=["src/lines.txt"]))
        answer = sim.start(task(place, objective, **more))
        sim.model.wait_for(lambda request: objective in request.text and request.number == 1, timeout=60)
        return Paused(answer, release)

    return start


def test_edits_made_during_the_run_and_the_result_are_both_there_afterwards(
    workspace: Make, paused: Callable[..., Paused]
) -> None:
    place = workspace({"src/lines.txt": LINES, "other.txt": "before\n", "staged.txt": "before\n"})
    place.write("notes.txt", "mine\n")
    place.write("staged.txt", "staged\n")
    place.git("add", "staged.txt")
    run = paused(place, "merged", FIRST)
    before = place.repository()
    place.write("other.txt", "edited meanwhile\n")
    place.write("src/lines.txt", LINES.replace("seven", "SEVEN"))
    place.write("src/mine.txt", "new meanwhile\n")
    place.write("staged.txt", "staged, then edited\n")
    answer = run.finish()
    assert (answer["verdict"], answer["integration"]) == (Verdict.VERIFIED, Integration.APPLIED)
    assert place.read("src/lines.txt") == LINES.replace("one", "ONE").replace("seven", "SEVEN")
    assert place.read("other.txt") == "edited meanwhile\n"
    assert place.read("src/mine.txt") == "new meanwhile\n"
    assert place.read("staged.txt") == "staged, then edited\n"
    assert place.read("notes.txt") == "mine\n"
    assert place.repository() == before


@pytest.mark.parametrize(
    ("worker", "person"),
    [
        pytest.param("sed -i s/one/ONE/ src/lines.txt", {"src/lines.txt": "mine\n"}, id="same lines"),
        pytest.param(
            "echo theirs > src/new.txt", {"src/new.txt": "mine\n"}, id="both add", marks=pytest.mark.long
        ),
        pytest.param(
            "sed -i s/one/ONE/ src/lines.txt",
            {"src/lines.txt": None},
            id="the person removes",
            marks=pytest.mark.long,
        ),
        pytest.param("rm src/lines.txt", {"src/lines.txt": "mine\n"}, id="the worker removes"),
        pytest.param(
            "echo theirs > src/new",
            {"src/new/below.txt": "mine\n"},
            id="file and folder",
            marks=pytest.mark.long,
        ),
    ],
)
def test_where_both_changed_the_same_nothing_is_overwritten_and_both_are_kept(
    sim: Sim,
    workspace: Make,
    paused: Callable[..., Paused],
    request: pytest.FixtureRequest,
    worker: str,
    person: dict[str, str | None],
) -> None:
    place = workspace({"src/lines.txt": LINES})
    run = paused(place, f"conflict: {request.node.callspec.id}", shell(worker))
    for path, content in person.items():
        if content is None:
            (place.path / path).unlink()
        else:
            place.write(path, content)
    mine = place.contents()
    answer = run.finish()
    assert (answer["verdict"], answer["state"]) == (Verdict.VERIFIED, RunState.HELD)
    assert answer["integration"] == Integration.CONFLICT
    (path,) = person
    assert path.removesuffix("/below.txt") in answer["integrationDetail"]
    assert place.contents() == mine
    diff = sim.inspect(answer["runId"], "diff")["text"]
    assert "+theirs" in diff or "+ONE" in diff or "deleted file" in diff
    # Asking for it by name changes nothing about the conflict.
    again = sim.control(answer["runId"], "integrate", ["t1"])
    assert (again["integration"], again["state"]) == (Integration.CONFLICT, RunState.HELD)
    assert place.contents() == mine


def test_the_same_change_made_by_both_is_no_conflict(workspace: Make, paused: Callable[..., Paused]) -> None:
    place = workspace({"src/lines.txt": LINES})
    run = paused(place, "same change", FIRST)
    place.write("src/lines.txt", LINES.replace("one", "ONE"))
    answer = run.finish()
    assert answer["state"] == RunState.DONE
    assert place.read("src/lines.txt") == LINES.replace("one", "ONE")


def test_a_check_that_passes_alone_and_not_together_holds_the_result_with_the_reason(
    sim: Sim, workspace: Make, paused: Callable[..., Paused]
) -> None:
    place = workspace({"src/lines.txt": LINES, "other.txt": "before\n"})
    run = paused(place, "together", FIRST, verificationCommands=["grep -q before other.txt"])
    place.write("other.txt", "after\n")
    answer = run.finish()
    assert (answer["verdict"], answer["state"]) == (Verdict.VERIFIED, RunState.HELD)
    assert "not on the workspace as it is now: grep -q before other.txt" in answer["integrationDetail"]
    assert place.read("src/lines.txt") == LINES
    assert "# merged tree" in sim.inspect(answer["runId"], "checks")["text"]
    place.write("other.txt", "before\n")
    assert sim.control(answer["runId"], "integrate")["integration"] == Integration.APPLIED
    assert place.read("src/lines.txt") == LINES.replace("one", "ONE")


def test_a_read_only_session_gets_its_result_held_and_cannot_have_it_applied(
    sim: Sim, workspace: Make
) -> None:
    place = workspace({"src/lines.txt": LINES})
    objective = sim.script("read-only", FIRST, report(files=["src/lines.txt"]))
    answer = sim.delegate(task(place, objective), _session(place, "read"))
    assert (answer["verdict"], answer["state"]) == (Verdict.VERIFIED, RunState.HELD)
    assert answer["integrationDetail"] == "the session may not write in the workspace"
    assert place.read("src/lines.txt") == LINES
    for action in ("integrate", "resume"):
        with pytest.raises(InvalidInput, match="may not write"):
            sim.control(answer["runId"], action, session=_session(place, "read"))
    assert place.read("src/lines.txt") == LINES
    done = sim.control(answer["runId"], "integrate", session=_session(place, "write"))
    assert (done["state"], done["integration"]) == (RunState.DONE, Integration.APPLIED)
    assert place.read("src/lines.txt") == LINES.replace("one", "ONE")


def test_the_default_workspace_is_the_folder_of_the_session(sim: Sim, workspace: Make) -> None:
    place = workspace({"src/lines.txt": LINES})
    call = task(place, sim.script("session folder", FIRST, report(files=["src/lines.txt"])))
    del call["workspace"]
    assert sim.delegate(call, _session(place, "write"))["integration"] == Integration.APPLIED
    assert place.read("src/lines.txt") == LINES.replace("one", "ONE")


def test_a_held_result_is_integrated_once_however_often_it_is_asked(sim: Sim, workspace: Make) -> None:
    place, run_id = _held(sim, workspace, "hold, integrate")
    done = sim.control(run_id, "integrate")
    assert (done["state"], done["integration"]) == (RunState.DONE, Integration.APPLIED)
    place.write("src/lines.txt", "edited afterwards\n")
    again = sim.control(run_id, "integrate")
    assert "nothing" in again["did"]
    assert (again["state"], again["integration"]) == (RunState.DONE, Integration.APPLIED)
    assert place.read("src/lines.txt") == "edited afterwards\n"
    for action in ("discard", "keep", "cancel"):
        assert sim.control(run_id, action)["state"] == RunState.DONE
    assert sim.control(run_id, "integrate")["integration"] == Integration.APPLIED


def test_a_discarded_result_stays_away_until_it_is_kept_after_all(sim: Sim, workspace: Make) -> None:
    place, run_id = _held(sim, workspace, "hold, discard")
    for _ in range(2):
        shown = sim.control(run_id, "discard")
        assert (shown["state"], shown["integration"]) == (RunState.DONE, Integration.DISCARDED)
        assert sim.run(run_id).integration is not Integration.HELD
    assert "nothing" in sim.control(run_id, "integrate")["did"]
    assert place.read("src/lines.txt") == LINES
    assert "+ONE" in sim.inspect(run_id, "diff")["text"]
    for _ in range(2):
        shown = sim.control(run_id, "keep")
        assert (shown["state"], shown["integration"]) == (RunState.HELD, Integration.HELD)
    assert sim.control(run_id, "integrate")["integration"] == Integration.APPLIED
    assert place.read("src/lines.txt") == LINES.replace("one", "ONE")


def test_a_cancelled_run_keeps_its_work_and_can_be_resumed_to_the_same_end(
    sim: Sim, workspace: Make, paused: Callable[..., Paused]
) -> None:
    place = workspace({"src/lines.txt": LINES})
    run = paused(place, "cancel", FIRST)
    run_id = sim.only_run("<cancel>")
    for _ in range(2):
        assert sim.control(run_id, "cancel")["state"] == RunState.CANCELLED
    assert run.answer.result(60)["state"] == RunState.CANCELLED
    assert sim.kept(run_id, "src/lines.txt") == LINES.replace("one", "ONE").encode()
    assert place.read("src/lines.txt") == LINES
    run.release.set()
    assert sim.control(run_id, "resume")["state"] in (RunState.QUEUED, RunState.RUNNING, RunState.DONE)
    answer = sim.wait(run_id)
    assert (answer["verdict"], answer["integration"]) == (Verdict.VERIFIED, Integration.APPLIED)
    assert place.read("src/lines.txt") == LINES.replace("one", "ONE")
    with pytest.raises(WrongState, match="nothing to resume"):
        sim.control(run_id, "resume")
    assert "nothing to cancel" in sim.control(run_id, "cancel")["did"]


def test_resuming_a_run_that_is_at_work_leaves_it_at_work(
    sim: Sim, workspace: Make, paused: Callable[..., Paused]
) -> None:
    place = workspace({"src/lines.txt": LINES})
    run = paused(place, "resume at work", FIRST)
    run_id = sim.only_run("<resume at work>")
    for _ in range(2):
        assert sim.control(run_id, "resume")["did"] == "it is at work"
    for action in ("integrate", "discard", "keep"):
        with pytest.raises(WrongState):
            sim.control(run_id, action)
    assert run.finish()["integration"] == Integration.APPLIED


def test_a_dry_run_tells_the_plan_and_creates_nothing(sim: Sim, workspace: Make) -> None:
    place = workspace({"src/lines.txt": LINES})
    state, runs = sim.root / "state", len(sim.service.house.ledger.runs(limit=1000))
    before, repository = place.contents(), _files(place.path / ".git")
    private = {path for name in ("repos", "worktrees", "logs") for path in (state / name).iterdir()}
    answer = sim.delegate(task(place, "<dry>", dryRun=True))
    assert answer["dryRun"] is True
    assert answer["workspace"] == str(place.path)
    assert len(sim.service.house.ledger.runs(limit=1000)) == runs
    assert (place.contents(), _files(place.path / ".git")) == (before, repository)
    assert {path for name in ("repos", "worktrees", "logs") for path in (state / name).iterdir()} == private


@pytest.mark.parametrize("kind", ["plain folder", "unborn", "subfolder", "symbolic link", "linked worktree"])
def test_wherever_the_workspace_is_the_result_lands_in_it(sim: Sim, workspace: Make, kind: str) -> None:
    place = _place(sim, workspace, kind)
    before = {path for path in place.contents() if path != "src/lines.txt"}
    objective = sim.script(f"place: {kind}", FIRST, shell("echo n > src/new.txt"), report())
    answer = sim.delegate(task(place, objective))
    assert (answer["verdict"], answer["integration"]) == (Verdict.VERIFIED, Integration.APPLIED), answer
    assert answer["evidence"]["changes"] == ["M src/lines.txt", "A src/new.txt"]
    assert answer["evidence"]["scope"] == "prevented"
    assert place.read("src/lines.txt") == LINES.replace("one", "ONE")
    assert set(place.contents()) == before | {"src/lines.txt", "src/new.txt"}


def _place(sim: Sim, workspace: Make, kind: str) -> Workspace:
    files: dict[str, str | bytes] = {"src/lines.txt": LINES, "notes.txt": "mine\n"}
    match kind:
        case "plain folder":
            return workspace(files, git=False)
        case "unborn":
            return workspace(files, commit=False)
        case "subfolder":
            top = workspace({f"packages/a/{path}": content for path, content in files.items()} | files)
            return Workspace(top.path / "packages/a", sim.env)
        case "symbolic link":
            real = workspace(files)
            link = real.path.with_name(real.path.name + "-link")
            link.symlink_to(real.path)
            return Workspace(link, sim.env)
        case _:
            main = workspace(files)
            linked = main.path.with_name(main.path.name + "-linked")
            main.git("worktree", "add", "-q", "--detach", str(linked))
            return Workspace(linked, sim.env)


def _held(sim: Sim, workspace: Make, marker: str) -> tuple[Workspace, str]:
    """A verified result that the call asked to hold."""
    place = workspace({"src/lines.txt": LINES})
    objective = sim.script(marker, FIRST, report(files=["src/lines.txt"]))
    answer = sim.delegate(task(place, objective, integrate="hold"))
    assert (answer["verdict"], answer["state"]) == (Verdict.VERIFIED, RunState.HELD)
    assert answer["integrationDetail"] == "the call asked to hold the result"
    assert place.read("src/lines.txt") == LINES
    return place, answer["runId"]


def _session(place: Workspace, access: str) -> Session:
    """A session as Codex describes it, that may read everything and do `access` in its folder."""
    entries = [
        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
        {"path": {"type": "special", "value": {"kind": "project_roots"}}, "access": access},
    ]
    profile = {
        "type": "managed",
        "file_system": {"type": "restricted", "entries": entries},
        "network": "restricted",
    }
    state = {"permissionProfile": profile, "sandboxCwd": place.path.as_uri()}
    return Session(cwd=str(place.path), profile=state)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_work_done_while_the_workspace_was_moved_away_is_taken_up_once_it_is_back(
    sim: Sim, workspace: Make
) -> None:
    place = workspace({"src/lines.txt": LINES})
    away = place.path.with_name(place.path.name + "-away")

    def move_away(_: Request) -> Step:
        place.path.rename(away)
        return shell("true")

    done = report(files=["src/lines.txt"])
    result = sim.delegate(task(place, sim.script("moved-away", FIRST, move_away, done, done)))
    assert (result["state"], result["verdict"]) == ("interrupted", "interrupted")
    assert result["reasons"] == [
        f"workspace {place.path} does not exist; what was done is kept and can be resumed"
    ]
    away.rename(place.path)
    sim.control(result["runId"], "resume")
    result = sim.wait(result["runId"])
    assert (result["verdict"], result["integration"]) == (Verdict.VERIFIED, Integration.APPLIED), result
    assert place.read("src/lines.txt") == LINES.replace("one", "ONE")
