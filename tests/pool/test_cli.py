"""`baton pool` as a person gives it: one process for each command, the real Codex, the scripted model."""

from __future__ import annotations

import itertools
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from baton.simulate.script import say, shell, stall
from e2e.sim import Sim

from .terminal import CHECKOUT, DEADLINE, Terminal

pytestmark = pytest.mark.codex

_numbers = itertools.count(1)


@pytest.fixture
def desk(sim: Sim) -> Terminal:
    folder = sim.root / f"project{next(_numbers)}"
    folder.mkdir()
    return Terminal(folder, sim.env)


def row(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "prompt": f"<{name}>", "model": "gpt-5.6-luna", "effort": "low", **more}


def marked(desk: Terminal, name: str) -> str:
    """A prompt of this test alone: the scripted model serves a whole module."""
    return f"<{desk.folder.name}-{name}>"


def job(desk: Terminal, name: str, **more: Any) -> dict[str, Any]:
    return row(name, **{"prompt": marked(desk, name), **more})


def test_a_file_is_run_to_its_end_and_the_same_command_again_does_nothing_twice(
    sim: Sim, desk: Terminal
) -> None:
    for name in ("a", "b", "c"):
        sim.model.on(marked(desk, name), say(f"answer {name}"))
    desk.write_rows(*(job(desk, name) for name in ("a", "b", "c")))
    out = desk.pool("run", "jobs.jsonl")
    assert "3 jobs to run" in out and "ok      a" in out and "done: 3 succeeded of 3" in out
    asked = len(sim.model.requests)
    again = desk.pool("run", "jobs.jsonl")
    assert "0 jobs to run, 3 are done already" in again and "done: 3 succeeded of 3" in again
    assert len(sim.model.requests) == asked
    shown = desk.pool("show", "b")
    assert "b  succeeded" in shown and "answer b" in shown
    assert "gpt-5.6-luna low (attested-by-codex-app-server)" in shown


def test_what_failed_is_named_with_the_command_that_runs_it_again(sim: Sim, desk: Terminal) -> None:
    sim.model.on(marked(desk, "good"), say("fine"))
    answers = iter(["", "", "now it works"])
    sim.model.on(marked(desk, "bad"), lambda request: say(next(answers)))
    desk.write_rows(job(desk, "good"), job(desk, "bad"))
    out = desk.pool("run", "jobs.jsonl", "--retries", "1", "--backoff", "0", status=1)
    assert "1 succeeded, 1 failed of 2" in out and "bad: the turn completed without a final message" in out
    command = next(line for line in out.splitlines() if "again:" in line).split("again:")[1].split()
    assert command[:3] == ["baton", "pool", "retry"] and command[4:] == ["bad"]
    again = desk.pool(*command[2:])
    assert "asked for again: bad" in again and "done: 2 succeeded of 2" in again
    status = desk.json("status")
    assert status["state"] == "done" and status["counts"]["succeeded"] == 2 and status["failed"] == []


def test_a_writer_that_may_have_written_runs_again_only_by_its_name(sim: Sim, desk: Terminal) -> None:
    answers = iter(["", "now it works"])
    sim.model.on(marked(desk, "w"), lambda request: say(next(answers)))
    desk.write_rows(job(desk, "w", sandbox="workspace-write", ownership_scope="out"))
    first = desk.json("run", "jobs.jsonl", "--retries", "3", "--backoff", "0", status=1)
    assert first["retry"] == f"baton pool retry {first['poolId']} w"
    asked = len(sim.model.requests)
    assert "asked for again: no job" in desk.pool("retry", first["poolId"], status=1)
    assert "1 failed of 1" in desk.pool("run", "jobs.jsonl", status=1)
    assert len(sim.model.requests) == asked
    assert "done: 1 succeeded of 1" in desk.pool("retry", first["poolId"], "w")


def test_with_more_failures_than_are_named_the_command_names_none(sim: Sim, desk: Terminal) -> None:
    for number in range(22):
        sim.model.on(marked(desk, f"j{number}x"), say(""))
    desk.write_rows(*(job(desk, f"j{number}x") for number in range(22)))
    out = desk.pool("run", "jobs.jsonl", "--retries", "0", status=1)
    assert "22 failed of 22" in out and "and 2 more" in out
    assert re.search(r"again:  baton pool retry \w+$", out.strip())


def test_json_is_one_object_and_nothing_else(sim: Sim, desk: Terminal) -> None:
    sim.model.on(marked(desk, "a"), say("x"))
    sim.model.on(marked(desk, "b"), say(" "))
    desk.write_rows(job(desk, "a"), job(desk, "b"))
    end = desk.json("run", "jobs.jsonl", "--retries", "0", status=1)
    assert (end["state"], end["total"], end["succeeded"]) == ("done", 2, False)
    assert end["counts"]["succeeded"] == 1 and end["counts"]["failed"] == 1
    assert [one["id"] for one in end["failed"]] == ["b"]
    assert end["retry"] == f"baton pool retry {end['poolId']} b" and end["resume"] is None
    assert end["tokens"] > 0
    (listed, *_) = desk.json("list", "--limit", "1")
    assert listed["poolId"] == end["poolId"] and listed["alive"] is False
    one = desk.json("show", "b")
    assert (one["state"], one["failureClass"]) == ("failed", "no_message")
    assert one["attempts"][0]["routeAttestation"] == "attested-by-codex-app-server"


def test_a_dry_run_shows_the_plan_and_starts_and_makes_nothing(sim: Sim, desk: Terminal) -> None:
    (desk.folder / "src").mkdir()
    desk.write_rows(
        job(desk, "a"),
        job(desk, "w", sandbox="workspace-write", ownership_scope="src", depends_on=["a"]),
    )
    before = sorted(path.name for path in desk.folder.iterdir())
    asked = len(sim.model.requests)
    out = desk.pool("run", "jobs.jsonl", "--dry-run", "--concurrency", "5")
    assert "2 jobs, 1 that writes; nothing has been started" in out
    assert "5 jobs at once" in out and "changes src" in out and "after a" in out
    plan = desk.json("run", "jobs.jsonl", "--dry-run", "--backend", "exec")
    assert plan["backend"] == "codex-exec"
    assert plan["route_attestation"] == "requested-via-cli-arguments-not-runtime-attested"
    assert [one["model"] for one in plan["jobs"]] == ["gpt-5.6-luna"] * 2
    assert "prompt" not in json.dumps(plan["jobs"]).replace("prompt_sha256", "")
    assert sorted(path.name for path in desk.folder.iterdir()) == before
    assert len(sim.model.requests) == asked


def test_a_bad_file_is_told_whole_and_nothing_is_run_or_made(sim: Sim, desk: Terminal) -> None:
    (desk.folder / "jobs.jsonl").write_text('{"id":"a","prompt":"p"}\n[]\n{"id":"a","prompt":"p","x":1}\n')
    asked = len(sim.model.requests)
    out = desk.pool("run", "jobs.jsonl", status=2)
    path = desk.folder / "jobs.jsonl"
    assert out.splitlines() == [
        f"{path}:2: must be one JSON object: {{…}}",
        f"{path}:3: id: 'a' is already the id of line 1",
        out.splitlines()[2],
        f"baton: 3 faults in {path}; nothing was run",
    ]
    assert out.splitlines()[2].startswith(f"{path}:3: x: unknown key")
    assert sorted(each.name for each in desk.folder.iterdir()) == ["jobs.jsonl"]
    assert len(sim.model.requests) == asked


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["run"], "Missing argument 'JOBS.jsonl'"),
        (["run", "none.jsonl"], "none.jsonl: cannot be read: No such file or directory"),
        (["run", "jobs.jsonl", "--concurency", "2"], "--concurency"),
        (["run", "jobs.jsonl", "--concurrency", "0"], "--concurrency"),
        (["run", "jobs.jsonl", "--write-concurrency", "2"], "--allow-disjoint-parallel-writers as well"),
        (["run", "jobs.jsonl", "--timeout", "0"], "--timeout"),
        (["run", "jobs.jsonl", "--backend", "docker"], "'app-server', 'exec'"),
        (["run", "jobs.jsonl", "--config", "none.toml"], "--config none.toml: no such file"),
        (["runn", "jobs.jsonl"], "did you mean 'run'?"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(desk: Terminal, arguments: list[str], fault: str) -> None:
    desk.write_rows(job(desk, "a"))
    out = desk.pool(*arguments, status=2)
    assert fault in out and len(out.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["status", "watch", "cancel", "export", "retry"])
def test_an_unknown_pool_is_one_line_with_what_to_do(desk: Terminal, command: str) -> None:
    out = desk.pool(command, "pool-none", status=1)
    assert "no pool 'pool-none'" in out and len(out.strip().splitlines()) == 1


def test_relative_folders_start_from_the_project_wherever_in_it_the_command_is_given(
    sim: Sim, desk: Terminal
) -> None:
    (desk.folder / ".git").mkdir()
    below = desk.folder / "src"
    below.mkdir()
    sim.model.on(marked(desk, "a"), say("x"))
    desk.write_rows(job(desk, "a", workdir="src"))
    assert "done: 1 succeeded" in desk.pool("run", "../jobs.jsonl", cwd=below)
    assert "1 is done already" in desk.pool("run", "jobs.jsonl")
    runs = desk.folder / ".codex" / "orchestration-runs"
    assert (runs / ".gitignore").read_text() == "*\n"
    assert (runs / "jobs" / "plan.json").is_file()


def test_a_moved_project_goes_on_with_its_pool(sim: Sim, desk: Terminal) -> None:
    sim.model.on(marked(desk, "a"), say("x"))
    desk.write_rows(job(desk, "a"))
    desk.pool("run", "jobs.jsonl")
    moved = desk.folder.rename(sim.root / f"moved{desk.folder.name}")
    assert "0 jobs to run, 1 is done already" in desk.pool("run", "jobs.jsonl", cwd=moved)


@pytest.mark.long
def test_a_job_file_that_was_moved_is_missed_by_retry_and_found_again_by_run(
    sim: Sim, desk: Terminal
) -> None:
    sim.model.on(marked(desk, "a"), say(" "))
    file = desk.write_rows(job(desk, "a"))
    pool_id = desk.json("run", "jobs.jsonl", "--retries", "0", status=1)["poolId"]
    file.rename(desk.folder / "moved.jsonl")
    out = desk.pool("retry", pool_id, status=2)
    assert f"{file}, the job file of pool {pool_id}, is gone; when it was moved, give `baton pool run`" in out
    assert len(out.splitlines()) == 1
    assert desk.json("run", "moved.jsonl", "--retries", "0", status=1)["poolId"] == pool_id
    again = desk.json("retry", pool_id, status=1)
    assert again["jobsFile"] == str(desk.folder / "moved.jsonl")
    assert len(desk.json("show", "a", "--pool", pool_id)["attempts"]) == 3


def test_a_pool_runs_from_any_folder_and_is_found_by_its_file(sim: Sim, desk: Terminal) -> None:
    other = sim.root / f"other{desk.folder.name}"
    other.mkdir()
    sim.model.on(marked(desk, "a"), say("x"))
    file = desk.write_rows(job(desk, "a"))
    desk.pool("run", str(file), "--project", str(desk.folder), cwd=other)
    assert "done" in desk.pool("status", str(file), cwd=other)
    assert not (other / ".codex").exists()


def test_the_earlier_scripts_name_is_a_door_to_the_same_command(sim: Sim, desk: Terminal) -> None:
    sim.model.on(marked(desk, "a"), say("x"))
    desk.write_rows(job(desk, "a"))
    script = [sys.executable, str(CHECKOUT / "scripts" / "orchestrate.py"), "jobs.jsonl"]
    flags = ["--concurrency", "3", "--write-concurrency", "1", "--timeout", "1800", "--retries", "1"]
    assert "1 job, 0 that write" in desk.program([*script, "--dry-run"])
    assert "done: 1 succeeded of 1" in desk.program([*script, *flags, "--backoff", "0.1"])


def test_the_script_goes_on_in_batons_own_environment_when_a_bare_python_starts_it(
    sim: Sim, desk: Terminal
) -> None:
    sim.model.on(marked(desk, "a"), say("x"))
    desk.write_rows(job(desk, "a"))
    # The door is told of an environment that is there already, so that none is built.
    bare = Terminal(desk.folder, {**desk.env, "BATON_RUNTIME": sys.executable})
    python = getattr(sys, "_base_executable", sys.executable)
    script = str(CHECKOUT / "scripts" / "orchestrate.py")
    command = [python, "-I", "-S", script, "jobs.jsonl"]
    assert "done: 1 succeeded of 1" in bare.program(command)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_resumable_and_leaves_no_process(
    sim: Sim, desk: Terminal, number: signal.Signals
) -> None:
    go_on = threading.Event()
    sim.model.on(marked(desk, "a"), stall(go_on), say("late"))
    sim.model.on(marked(desk, "b"), say("b"))
    desk.write_rows(job(desk, "a"), job(desk, "b", depends_on=["a"]))
    process = subprocess.Popen(
        desk.command("run", "jobs.jsonl"),
        cwd=desk.folder,
        env=desk.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        sim.model.wait_for(lambda request: marked(desk, "a") in request.text, DEADLINE)
        process.send_signal(number)
        out, _ = process.communicate(timeout=DEADLINE)
    finally:
        process.kill()
        go_on.set()
    assert process.returncode == 130 and "Traceback" not in out
    assert "interrupted" in out and "go on:  baton pool run" in out
    command = next(line for line in out.splitlines() if "go on:" in line).split("go on:")[1].split()
    assert "done: 2 succeeded of 2" in desk.pool(*command[2:])


def test_a_pool_that_runs_elsewhere_can_be_watched_and_cancelled(sim: Sim, desk: Terminal) -> None:
    go_on = threading.Event()
    sim.model.on(marked(desk, "a"), stall(go_on), say("late"))
    desk.write_rows(job(desk, "a"), job(desk, "b", depends_on=["a"]))
    process = subprocess.Popen(
        desk.command("run", "jobs.jsonl", "--json"),
        cwd=desk.folder,
        env=desk.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        sim.model.wait_for(lambda request: marked(desk, "a") in request.text, DEADLINE)
        file = str(desk.folder / "jobs.jsonl")
        assert desk.json("status", file)["alive"] is True
        watching = subprocess.Popen(
            desk.command("watch", file),
            cwd=desk.folder,
            env=desk.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith("0/2  1 running, 1 queued")
        assert "asked to stop" in desk.pool("cancel", file)
        out, _ = process.communicate(timeout=DEADLINE)
        rest, _ = watching.communicate(timeout=DEADLINE)
    finally:
        process.kill()
        go_on.set()
    assert process.returncode == 1 and json.loads(out)["state"] == "cancelled"
    assert watching.returncode == 0 and "cancelled" in rest


@pytest.mark.long
def test_a_second_run_of_the_same_file_is_refused_while_the_first_goes_on(sim: Sim, desk: Terminal) -> None:
    go_on = threading.Event()
    sim.model.on(marked(desk, "a"), stall(go_on), say("x"))
    desk.write_rows(job(desk, "a"))
    process = subprocess.Popen(
        desk.command("run", "jobs.jsonl", "--json"),
        cwd=desk.folder,
        env=desk.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        sim.model.wait_for(lambda request: marked(desk, "a") in request.text, DEADLINE)
        out = desk.pool("run", "jobs.jsonl", status=1)
        assert "another process works with the run directory" in out
    finally:
        go_on.set()
        process.communicate(timeout=DEADLINE)
    assert process.returncode == 0


def test_on_a_terminal_it_is_a_table_that_ends_in_the_summary(sim: Sim, desk: Terminal) -> None:
    sim.model.on(marked(desk, "a"), say("x"))
    sim.model.on(marked(desk, "b"), shell("true"), say(""))
    desk.write_rows(job(desk, "a"), job(desk, "b"))
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        desk.command("run", "jobs.jsonl", "--retries", "0"),
        cwd=desk.folder,
        env={**desk.environment(), "TERM": "xterm-256color", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    shown = _read_all(leader)
    assert process.wait(DEADLINE) == 1
    assert "░" in shown and "running" in shown
    assert "failed  b: the turn completed without a final message" in shown
    assert shown.rstrip().splitlines()[-1].strip().startswith("again:  baton pool retry")


@pytest.mark.long
def test_a_second_interrupt_on_a_terminal_gives_it_back_and_says_how_to_go_on(
    sim: Sim, desk: Terminal
) -> None:
    sim.model.on(marked(desk, "w"), shell("true"), stall())
    desk.write_rows(job(desk, "w", sandbox="workspace-write"))
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        desk.command("run", "jobs.jsonl"),
        cwd=desk.folder,
        env={**desk.environment(), "TERM": "xterm-256color", "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    sim.model.wait_for(lambda request: marked(desk, "w") in request.text and bool(request.outputs), DEADLINE)
    process.send_signal(signal.SIGINT)
    shown = _read_until(leader, "1 writer may end first, unless told again")
    process.send_signal(signal.SIGINT)
    shown += _read_all(leader)
    assert process.wait(DEADLINE) == 130
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    assert f"baton: ended by force; go on: baton pool run {desk.folder / 'jobs.jsonl'}" in shown
    desk.pool("cancel")
    out = desk.pool("run", "jobs.jsonl", status=1)
    assert "0 jobs to run, 1 waits for you to name it" in out


def test_a_terminal_gets_no_escape_sequences_of_a_workers(sim: Sim, desk: Terminal) -> None:
    sim.model.on(marked(desk, "a"), say("\x1b[2J\x1b]0;owned\x07 hidden"))
    desk.write_rows(job(desk, "a"))
    desk.pool("run", "jobs.jsonl")
    shown = desk.pool("show", "a")
    assert "\x1b" not in shown and "\x07" not in shown and r"\x1b[2J" in shown


def _read_until(leader: int, text: str | None) -> str:
    """What a terminal shows until this text is there; without one until nobody writes any more."""
    content = b""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline and (text is None or text.encode() not in content):
        ready, _, _ = select.select([leader], [], [], 1.0)
        if not ready:
            continue
        try:
            data = os.read(leader, 65536)
        except OSError:
            break
        if not data:
            break
        content += data
    return content.decode("utf-8", "replace")


def _read_all(leader: int) -> str:
    shown = _read_until(leader, None)
    os.close(leader)
    return shown


def test_the_examples_are_copied_and_can_be_planned(sim: Sim, desk: Terminal) -> None:
    for folder in ("src/api", "docs", "tests"):
        (desk.folder / folder).mkdir(parents=True)
    desk.pool("examples", "ex")
    names = sorted(path.name for path in (desk.folder / "ex").iterdir())
    assert names == [
        "jobs.parallel-writers.jsonl",
        "jobs.pipeline.jsonl",
        "jobs.read-only.jsonl",
        "orchestration.example.toml",
    ]
    for name in names[:3]:
        parallel = ["--write-concurrency", "2", "--allow-disjoint-parallel-writers"]
        config = ["--config", "ex/orchestration.example.toml"]
        flags = parallel if "writers" in name else config
        assert "nothing has been started" in desk.pool("run", f"ex/{name}", "--dry-run", *flags)
    assert "has jobs.parallel-writers.jsonl" in desk.pool("examples", "ex", status=2)


def test_the_checkouts_examples_are_what_a_wheel_carries() -> None:
    project = (CHECKOUT / "pyproject.toml").read_text()
    for line in ('examples = "baton/bundle/examples"', 'config = "baton/bundle/config"'):
        assert line in project
    assert Path(CHECKOUT / "examples" / "jobs.read-only.jsonl").is_file()
