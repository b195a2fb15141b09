"""What a person reads of real runs in the terminal: `baton runs`, and the events as their contract says."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from baton.contract.events import event_fault
from baton.contract.states import Integration, Verdict
from baton.simulate import workers
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

CHECK = "python3 -B -c 'import sys; sys.path.insert(0, \"src\"); from calc import add; assert add(2, 3) == 5'"
WRONG, RIGHT = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\r\n"


@dataclass(frozen=True)
class Machine:
    sim: Sim
    place: Workspace
    landed: str
    held: str

    def baton(self, *arguments: str, status: int = 0) -> str:
        return self.raw(*arguments, status=status).decode()

    def raw(self, *arguments: str, status: int = 0) -> bytes:
        env = {**self.sim.env, "PYTHONPATH": ":".join(path for path in sys.path if path)}
        command = [sys.executable, "-m", "baton.cli.main", *arguments]
        done = subprocess.run(command, env=env, cwd=self.sim.root, capture_output=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self.baton(*arguments, "--json"))


@pytest.fixture(scope="module")
def machine(sim: Sim) -> Machine:
    place = sim.workspace("read", {"src/calc.py": WRONG})
    call = {"workspace": str(place.path), "allowedFiles": ["src/"], "verificationCommands": [CHECK]}
    good = sim.script("right", *workers.honest({"src/calc.py": RIGHT}, [CHECK]))
    landed = sim.delegate(call | {"objective": good, "label": "the right one"})
    assert (landed["verdict"], landed["integration"]) == (Verdict.VERIFIED, Integration.APPLIED)
    bad = sim.script("wrong", *workers.false_pass({"src/calc.py": WRONG, "src/\x1b[2Jx": "x\n"}, [CHECK]))
    held = sim.delegate(call | {"objective": bad})
    assert held["verdict"] == Verdict.FAILED
    return Machine(sim, place, str(landed["runId"]), str(held["runId"]))


def test_the_list_has_the_newest_first_and_its_filters_narrow_it(machine: Machine) -> None:
    assert [run["runId"] for run in machine.json("runs", "list")] == [machine.held, machine.landed]
    for filters, found in {
        ("--state", "done"): [machine.landed],
        ("--state", "held", "--state", "done"): [machine.held, machine.landed],
        ("--verdict", "failed"): [machine.held],
        ("--label", "The RIGHT"): [machine.landed],
        ("--workspace", str(machine.place.path.parent)): [machine.held, machine.landed],
        ("--workspace", str(machine.place.path / "src")): [],
        ("--since", "1h"): [machine.held, machine.landed],
        ("--until", "1h"): [],
        ("--limit", "1"): [machine.held],
    }.items():
        assert [run["runId"] for run in machine.json("runs", "list", *filters)] == found, filters


def test_show_prints_the_command_that_gets_the_kept_work(machine: Machine) -> None:
    told = machine.baton("runs", "show", machine.held)
    command = next(line for line in told.splitlines() if line.startswith("  kept: ")).removeprefix("  kept: ")
    assert machine.json("runs", "show", machine.held)["fetch"] == {"t1": command}
    env = machine.sim.env
    subprocess.run(["sh", "-c", command], cwd=machine.place.path, env=env, check=True, capture_output=True)
    assert machine.place.git("show", "FETCH_HEAD:src/calc.py") == WRONG
    assert "because: " in told and "scope: " in told


def test_the_patch_is_exact_when_asked_for_and_harmless_otherwise(machine: Machine, test_root: Path) -> None:
    patch = machine.raw("runs", "diff", machine.landed, "--raw")
    (test_root / "src").mkdir()
    (test_root / "src" / "calc.py").write_text(WRONG)
    subprocess.run(["git", "apply", "-"], input=patch, cwd=test_root, check=True)
    assert (test_root / "src" / "calc.py").read_bytes() == RIGHT.encode()
    shown = machine.baton("runs", "diff", machine.landed)
    assert "+    return a + b\\x0d\n" in shown and "git fetch" in shown
    shown = machine.baton("runs", "show", machine.held) + machine.baton("runs", "diff", machine.held)
    assert all(char.isprintable() or char in "\n\t" for char in shown)
    assert machine.json("runs", "diff", machine.landed)["tasks"][0]["taskId"] == "t1"


def test_evidence_puts_the_claim_beside_what_was_observed(machine: Machine) -> None:
    told = machine.baton("runs", "evidence", machine.held)
    assert "claimed: PASS: Everything passes." in told
    assert "check failed: python3 -B" in told
    assert "discrepancy: claims PASS, but the check fails" in told
    full = machine.baton("runs", "evidence", machine.held, "--output")
    assert "| AssertionError" in full
    found = machine.json("runs", "evidence", machine.held, "--output")
    attempts = found["tasks"][0]["attempts"]
    assert [attempt["kind"] for attempt in attempts] == ["first", "repair"]
    check = attempts[0]["result"]["evidence"]["checks"][0]
    assert "AssertionError" in found["outputs"][check["output"]]


def test_every_event_of_a_real_run_is_as_documented(machine: Machine) -> None:
    for run_id in (machine.landed, machine.held):
        events = machine.json("runs", "log", run_id)["events"]
        assert [event_fault(event["kind"], event["data"]) for event in events] == [None] * len(events)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        kinds = {event["kind"] for event in events}
        assert {"run.admitted", "attempt.judged", "worker.command", "check", "task.done"} <= kinds
    told = machine.baton("runs", "log", machine.landed)
    assert "t1 check passed: python3" in told
    assert "applied 1 path" in told
    later = machine.json("runs", "log", machine.landed, "--after", "3")["events"]
    assert later[0]["seq"] == 4


def test_an_export_is_complete_and_overwrites_nothing(machine: Machine, test_root: Path) -> None:
    folder = test_root / "out"
    told = machine.json("runs", "export", machine.held, str(folder))
    assert told["files"] == sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert {
        "run.json",
        "evidence.json",
        "events.jsonl",
        "tasks/t1/1/brief.txt",
        "tasks/t1/1/report.txt",
        "tasks/t1/1/changes.patch",
        "tasks/t1/1/check-1.txt",
        "tasks/t1/2/report.txt",
    } <= set(told["files"])
    assert "AssertionError" in (folder / "tasks/t1/1/check-1.txt").read_text()
    before = (folder / "run.json").read_bytes()
    assert "is there already" in machine.baton("runs", "export", machine.held, str(folder), status=2)
    assert (folder / "run.json").read_bytes() == before
    told = machine.baton("runs", "export", machine.landed, str(test_root / "more"))
    written = sum(path.is_file() for path in (test_root / "more").rglob("*"))
    assert told.strip() == f"wrote {written} files to {test_root / 'more'}"
    assert sorted(path.name for path in test_root.iterdir()) == ["home", "more", "out"]


def test_results_can_be_read_when_the_workspace_is_gone(machine: Machine) -> None:
    elsewhere = machine.place.path.with_name("elsewhere")
    machine.place.path.rename(elsewhere)
    try:
        told = machine.baton("runs", "show", machine.held)
        assert "kept: git --git-dir=" in told
        assert "claimed: PASS" in machine.baton("runs", "evidence", machine.held)
    finally:
        elsewhere.rename(machine.place.path)


def test_what_does_not_exist_is_one_line(machine: Machine) -> None:
    for arguments in (("diff", "rnothere"), ("log", "rnothere"), ("export", "rnothere")):
        assert machine.baton("runs", *arguments, status=1).startswith("baton: no run 'rnothere'")
    told = machine.baton("runs", "diff", machine.held, "--task", "nope", status=1)
    assert told == f"baton: run {machine.held} has no task 'nope'; it has t1\n"
    assert "no attempt 9" in machine.baton("runs", "diff", machine.held, "--attempt", "9", status=1)
