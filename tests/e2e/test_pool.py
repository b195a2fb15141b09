"""A job file on the real Codex: every way in which a job can end, and the limits that stop the whole."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from baton.contract.claim import ClaimStatus
from baton.contract.states import FailureClass
from baton.ledger.pool_records import JobState
from baton.pool.trouble import Evidence
from baton.simulate.request import Request
from baton.simulate.script import (
    Action,
    Step,
    claiming,
    context_overflow,
    drop_connection,
    fail,
    overloaded,
    rate_limited,
    say,
    shell,
    stall,
    unknown_model,
    usage_limit,
)
from baton.simulate.workers import report, write
from e2e import altered_codex
from e2e.sim import Sim, Workspace
from pool.terminal import Terminal

pytestmark = pytest.mark.codex

NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
GO_ON = 8
COMES_BACK = int(time.time()) + 3 * 24 * 3600


def one_by_one(*answers: Action) -> Callable[[Request], Step]:
    """An answer for each request, over all threads; the last one stays."""
    left = list(answers)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


class Mixed:
    """Fifty jobs of every kind, and what is to become of each."""

    def __init__(self, sim: Sim, place: Workspace, terminal: Terminal) -> None:
        self.sim, self.place, self.terminal = sim, place, terminal
        self.rows: list[dict[str, Any]] = []
        self.expected: dict[str, tuple[JobState, str | None]] = {}

    def job(self, name: str, *steps: Step, ends: FailureClass | Evidence | None = None, **more: Any) -> str:
        """A reader, unless `more` says otherwise; `ends` is the class with which it fails."""
        prompt = f"<{self.place.path.name} {name}>"
        # A thread that goes on after a cut takes the steps that follow.
        self.sim.model.on(prompt, *(steps if len(steps) > 1 else steps * GO_ON))
        route = {"tier": "luna"} if more.get("isolate") else {"model": "gpt-5.6-luna"}
        self.rows.append({"id": name, "prompt": prompt, "effort": "low", **route, **more})
        failed = (JobState.FAILED, ends.value) if ends is not None else None
        self.expected[name] = failed or (JobState.SUCCEEDED, None)
        return name

    def writer(self, name: str, *steps: Step, **more: Any) -> str:
        given = {"sandbox": "workspace-write", "ownership_scope": f"out/{name}", **more}
        return self.job(name, *steps, **given)

    def kill_codex(self) -> None:
        """Kill every Codex below this test that works for a model."""
        for process in psutil.Process().children(recursive=True):
            try:
                program, *arguments = process.cmdline() or [""]
                if Path(program).name.startswith("codex") and {"app-server", "exec"} & {*arguments}:
                    process.kill()
            except psutil.NoSuchProcess:
                pass

    def states(self, pool_id: str) -> dict[str, tuple[str, str | None]]:
        """State and failure class of every job."""
        jobs = self.sim.service.house.ledger.pool_jobs(pool_id)
        return {job.job_id: (job.state.value, job.failure_class) for job in jobs}


def fifty(mixed: Mixed) -> list[str]:
    """The rows; gives the writers."""
    job, writer = mixed.job, mixed.writer
    killed: list[bool] = []

    def crash_once(request: Request) -> Step:
        if killed:
            return say("it works the second time")
        killed.append(True)
        mixed.kill_codex()
        return stall()

    readers = [job(f"read-{number:02}", say(f"answer {number}")) for number in range(12)]
    job("usage-limit", one_by_one(usage_limit(COMES_BACK), say("after the reset")))
    job("schema", say({"n": 1}), output_schema=NUMBER)
    job("schema-late", one_by_one(say({"n": "1"}), say({"n": 2})), output_schema=NUMBER)
    job("schema-never", say("no JSON"), output_schema=NUMBER, ends=Evidence.SCHEMA)
    job("check", say("x"), verification_commands=["test -f a.txt", ["true"]])
    job("check-fails", say("x"), verification_commands=["false"], ends=Evidence.CHECK_FAILED)
    job("silent", say(" \n"), ends=Evidence.NO_MESSAGE)
    job("silent-once", one_by_one(say(""), say("now")))
    job("limited", one_by_one(rate_limited(1), say("later")))
    job("limited-twice", one_by_one(rate_limited(1), rate_limited(0.5), say("later")))
    job("overloaded", one_by_one(overloaded(), say("later")))
    job("dropped", one_by_one(drop_connection(), say("later")))
    job("too-long", context_overflow(), ends=FailureClass.CONTEXT_OVERFLOW)
    job("refused", fail(400), ends=FailureClass.BAD_REQUEST)
    job("no-model", unknown_model("gpt-5.6-luna"), ends=FailureClass.UNKNOWN_MODEL)
    job("other-model", claiming("gpt-4.1-mini", say("x")), ends=FailureClass.ROUTE_MISMATCH)
    job("first", say("1"))
    job("second", say("2"), depends_on=["first"])
    job("third", say("3"), depends_on=["second", "schema"])
    job("orphan", say("never asked"), depends_on=["check-fails"])
    mixed.expected["orphan"] = (JobState.SKIPPED, None)
    writers = [
        writer(
            f"write-{number}",
            write(f"out/write-{number}/done.txt", f"{number}\n"),
            say("written"),
            verification_commands=[f"grep -qx {number} out/write-{number}/done.txt"],
        )
        for number in range(5)
    ]
    writers.append(
        writer(
            "liar", say("I wrote it."), verification_commands=["test -e out/liar"], ends=Evidence.CHECK_FAILED
        )
    )
    writers.append(writer("limited-writer", rate_limited(1), ends=FailureClass.RATE_LIMIT))
    writers.append(writer("safe-writer", one_by_one(say(""), say("written")), safe_retry=True))
    for number in range(2):
        path = f"iso/{number}.txt"
        job(
            f"isolated-{number}",
            write(path, "made\n"),
            report(ClaimStatus.PASS, files=[path]),
            sandbox="workspace-write",
            isolate=True,
            allowed_files=[path],
            verification_commands=[f"grep -qx made {path}"],
        )
    job(
        "isolated-liar",
        report(ClaimStatus.PASS, files=["iso/liar.txt"]),
        sandbox="workspace-write",
        isolate=True,
        allowed_files=["iso/liar.txt"],
        verification_commands=["test -e iso/liar.txt"],
        ends=Evidence.NOT_MERGED,
    )
    job("login", one_by_one(fail(401), say("logged in again")), depends_on=[*readers, "usage-limit"])
    job("crash", crash_once, depends_on=["login", *writers[:5], "safe-writer", "isolated-0", "isolated-1"])
    # After the crash, which ends whatever is at work.
    late = {"depends_on": ["crash"]}
    job("idle", stall(), ends=FailureClass.IDLE_TIMEOUT, **late)
    job("slow", shell("sleep 60"), timeout_seconds=2, ends=FailureClass.TURN_TIMEOUT, **late)
    job("slow-once", shell("sleep 60"), say("after the cut"), timeout_seconds=2, **late)
    for number in range(50 - len(mixed.rows)):
        job(f"late-{number}", say("x"), depends_on=["login"])
    assert len(mixed.rows) == 50
    return writers


@pytest.mark.parametrize("backend", ["app-server", pytest.param("exec", marks=pytest.mark.long)])
def test_fifty_mixed_jobs_each_end_as_they_must_through_every_class_of_failure(
    sim: Sim, workspace: Callable[..., Workspace], backend: str
) -> None:
    place = workspace({"a.txt": "a\n"})
    terminal = Terminal(place.path, sim.env)
    mixed = Mixed(sim, place, terminal)
    fifty(mixed)
    if backend == "exec":
        # Which model answers is nothing that `codex exec` tells.
        mixed.expected["other-model"] = (JobState.SUCCEEDED, None)
    terminal.write_rows(*mixed.rows)
    flags = ["--concurrency", "4", "--retries", "1", "--backoff", "0.1", "--backend", backend]
    patient = "[deadlines]\nidle_seconds = 5\n[pool]\nbreaker_failures = 20\n"
    with sim.policy(patient):
        stopped = terminal.json("run", "jobs.jsonl", *flags, status=1)
        # Codex tells the time by the minute.
        assert stopped["state"] == "stopped" and 0 <= stopped["backAt"] - COMES_BACK <= 60
        assert stopped["resume"].startswith("baton pool run ")
        out = terminal.pool("run", "jobs.jsonl", *flags, status=1)
        assert "stopped: " in out and "auth" in out.lower() + terminal.json("status")["note"].lower()
        end = terminal.json("run", "jobs.jsonl", *flags, status=1)
    assert end["state"] == "done"
    told = mixed.states(end["poolId"])
    wrong = {
        name: (told[name], expected)
        for name, expected in mixed.expected.items()
        if told[name] != (expected[0].value, expected[1])
    }
    assert wrong == {}
    counts = {state.value: 0 for state in JobState}
    for state, _ in mixed.expected.values():
        counts[state.value] += 1
    assert end["counts"] == counts


def test_what_ran_leaves_the_files_of_the_writers_and_an_export_of_everything(
    sim: Sim, workspace: Callable[..., Workspace]
) -> None:
    place = workspace({"a.txt": "a\n"})
    terminal = Terminal(place.path, sim.env)
    mixed = Mixed(sim, place, terminal)
    mixed.job("reads", say("answer"))
    mixed.writer("writes", write("out/writes/x.txt", "x\n"), say("written"))
    mixed.job("silent", say(""), ends=Evidence.NO_MESSAGE)
    terminal.write_rows(*mixed.rows)
    terminal.pool("run", "jobs.jsonl", "--retries", "1", "--backoff", "0", status=1)
    assert place.read("out/writes/x.txt") == "x\n"
    manifest = json.loads(Path(terminal.pool("export").strip()).read_text())
    assert {name: entry["status"] for name, entry in manifest["jobs"].items()} == {
        "reads": "succeeded",
        "writes": "succeeded",
        "silent": "failed",
    }
    assert [attempt["status"] for attempt in manifest["jobs"]["silent"]["attempts"]] == [
        "missing_final_output",
        "missing_final_output",
    ]


def test_outside_git_jobs_read_write_and_are_isolated_as_well(
    sim: Sim, workspace: Callable[..., Workspace]
) -> None:
    place = workspace({"a.txt": "a\n"}, git=False)
    terminal = Terminal(place.path, sim.env)
    mixed = Mixed(sim, place, terminal)
    mixed.job("reads", say("a"))
    mixed.writer("writes", write("out/writes/x.txt", "x\n"), say("written"))
    mixed.job(
        "isolated",
        write("iso.txt", "made\n"),
        report(ClaimStatus.PASS, files=["iso.txt"]),
        sandbox="workspace-write",
        isolate=True,
        allowed_files=["iso.txt"],
        verification_commands=["grep -qx made iso.txt"],
    )
    terminal.write_rows(*mixed.rows)
    assert "done: 3 succeeded of 3" in terminal.pool("run", "jobs.jsonl")
    assert (place.read("out/writes/x.txt"), place.read("iso.txt")) == ("x\n", "made\n")


@pytest.fixture(scope="module")
def altered(codex_binary: Path, machine_root: Path) -> Iterator[Sim]:
    """A machine whose Codex can be made to do what the real one never does by itself."""
    (machine_root / "altered").mkdir()
    program = altered_codex.install(machine_root / "altered", codex_binary)
    with Sim(machine_root / "altered-machine", program) as machine:
        yield machine


@pytest.mark.parametrize(
    ("how", "failure"),
    [
        (altered_codex.SILENT, FailureClass.START_TIMEOUT),
        (altered_codex.OTHER_MODEL, FailureClass.ROUTE_MISMATCH),
        (altered_codex.OTHER_PROFILE, FailureClass.SCOPE_NOT_ENFORCED),
    ],
)
def test_a_job_that_codex_does_not_start_as_asked_is_given_no_work(
    altered: Sim, how: str, failure: FailureClass
) -> None:
    place = altered.workspace(how.replace(" ", "-"), {"a.txt": "a\n"})
    terminal = Terminal(place.path, altered.env)
    mixed = Mixed(altered, place, terminal)
    mixed.job("reads", say("never"), ends=failure)
    mixed.writer("writes", say("never"), ends=failure)
    terminal.write_rows(*mixed.rows)
    altered_codex.alter(Path(altered.env["BATON_CODEX_BIN"]), how)
    asked = len(altered.model.requests)
    with altered.policy("[deadlines]\nstart_seconds = 2\n"):
        end = terminal.json("run", "jobs.jsonl", "--retries", "0", status=1)
    assert mixed.states(end["poolId"]) == {
        name: (must[0].value, must[1]) for name, must in mixed.expected.items()
    }
    assert len(altered.model.requests) == asked


def test_the_time_of_the_whole_pool_ends_it_and_the_rest_is_resumed(
    sim: Sim, workspace: Callable[..., Workspace]
) -> None:
    place = workspace({"a.txt": "a\n"})
    terminal = Terminal(place.path, sim.env)
    mixed = Mixed(sim, place, terminal)
    mixed.job("quick", say("x"))
    mixed.job("long", one_by_one(stall(), say("in the second run")), depends_on=["quick"])
    terminal.write_rows(*mixed.rows)
    out = terminal.pool("run", "jobs.jsonl", "--total", "4", status=1)
    assert "stopped: 1 succeeded, 1 queued of 2" in out
    assert "done: 2 succeeded of 2" in terminal.pool("run", "jobs.jsonl")


def test_a_token_budget_stops_the_pool(sim: Sim, workspace: Callable[..., Workspace]) -> None:
    place = workspace({"a.txt": "a\n"})
    terminal = Terminal(place.path, sim.env)
    mixed = Mixed(sim, place, terminal)
    for number in range(4):
        mixed.job(f"j{number}", say("x"))
    terminal.write_rows(*mixed.rows)
    end = terminal.json("run", "jobs.jsonl", "--token-budget", "1500", "--concurrency", "1", status=1)
    assert end["state"] == "stopped" and 1500 <= end["tokens"] < 4 * 1280
    assert 0 < end["counts"]["queued"] < 4
    assert "done: 4 succeeded" in terminal.pool("run", "jobs.jsonl", "--token-budget", "100000")
