"""What people had with the codex-orchestration batch runner: each behaviour of its README has a test.

The table in docs/parity/codex-orchestration.md leads from each behaviour to its test.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import re
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from baton.ledger.artifacts import Artifacts
from baton.ledger.state import StateFolder
from baton.pool.trouble import backoff
from baton.simulate.script import say, stall
from baton.simulate.workers import write
from e2e.sim import Sim

from .terminal import CHECKOUT, Terminal

TABLE = CHECKOUT / "docs" / "parity" / "codex-orchestration.md"

# As the README has them, so that people's files are known to go on working.
README_READER = (
    '{"id":"repo-summary","prompt":"Inspect this repository without editing it. Return its purpose and'
    ' verification commands.","model":"gpt-5.6-luna","effort":"low","sandbox":"read-only","workdir":"."}\n'
)
README_WRITERS = (
    '{"id":"api","prompt":"Implement and verify the bounded API change.","model":"gpt-5.6-terra",'
    '"effort":"high","sandbox":"workspace-write","workdir":".","ownership_scope":"src/api",'
    '"safe_retry":false}\n'
    '{"id":"docs","prompt":"Update and verify the related documentation.","model":"gpt-5.6-luna",'
    '"effort":"medium","sandbox":"workspace-write","workdir":".","ownership_scope":"docs",'
    '"safe_retry":true}\n'
)
PARALLEL = ("--concurrency", "2", "--write-concurrency", "2", "--allow-disjoint-parallel-writers")

codex = pytest.mark.codex
_numbers = itertools.count(1)


@pytest.fixture
def desk(sim: Sim) -> Terminal:
    folder = sim.root / f"parity{next(_numbers)}"
    for name in ("src/api", "docs", ".codex"):
        (folder / name).mkdir(parents=True)
    return Terminal(folder, sim.env)


def job(desk: Terminal, name: str, **more: Any) -> dict[str, Any]:
    prompt = f"<{desk.folder.name} {name}>"
    route = {"model": "gpt-5.6-luna", "effort": "low", "sandbox": "read-only", "workdir": "."}
    return {"id": name, "prompt": prompt, **route, **more}


def writer(desk: Terminal, name: str, **more: Any) -> dict[str, Any]:
    return job(desk, name, **{"sandbox": "workspace-write", "ownership_scope": f"out/{name}", **more})


def manifest(desk: Terminal) -> dict[str, Any]:
    found = json.loads(Path(desk.pool("export", "jobs.jsonl").strip()).read_text())
    assert isinstance(found, dict)
    return found


# -- configuration ---------------------------------------------------------------------------------


@codex
def test_the_example_configuration_is_copied_into_a_project_and_its_mode_chosen(desk: Terminal) -> None:
    example = (CHECKOUT / "config" / "orchestration.example.toml").read_text()
    desk.write_rows(job(desk, "a"))
    for mode, number in (("conservative", 2), ("balanced", 3), ("large", 8)):
        chosen = example.replace('mode = "balanced"', f'mode = "{mode}"')
        (desk.folder / ".codex" / "orchestration.toml").write_text(chosen)
        plan = desk.json("run", "jobs.jsonl", "--dry-run")
        assert (plan["concurrency"], plan["write_concurrency"]) == (number, 1)


@codex
def test_configuration_is_resolved_from_the_persons_to_the_projects_to_the_named_file_to_flags(
    sim: Sim, desk: Terminal
) -> None:
    desk.write_rows(job(desk, "a"))
    person = sim.codex_home / "orchestration.toml"
    person.write_text("[pool]\nconcurrency = 7\nmax_retries = 9\n")
    try:
        (desk.folder / ".codex" / "orchestration.toml").write_text("[pool]\nconcurrency = 6\n")
        (desk.folder / "named.toml").write_text("[pool]\nconcurrency = 5\nretry_backoff_seconds = 4.0\n")
        plan = desk.json("run", "jobs.jsonl", "--dry-run")
        assert (plan["concurrency"], plan["retries"]) == (6, 9)
        named = ("--config", "named.toml")
        plan = desk.json("run", "jobs.jsonl", "--dry-run", *named)
        assert (plan["concurrency"], plan["retries"], plan["backoff"]) == (5, 9, 4.0)
        plan = desk.json("run", "jobs.jsonl", "--dry-run", *named, "--concurrency", "4", "--retries", "0")
        assert (plan["concurrency"], plan["retries"], plan["backoff"]) == (4, 0, 4.0)
        assert [Path(source).name for source in plan["config_sources"][-4:]] == [
            *("orchestration.toml", "orchestration.toml", "named.toml", "flags")
        ]
    finally:
        person.unlink()


@codex
def test_what_the_file_says_of_numbers_times_and_places_is_what_runs(desk: Terminal) -> None:
    desk.write_rows(job(desk, "a"))
    (desk.folder / "all.toml").write_text(
        "[pool]\nconcurrency = 5\nmax_retries = 4\njob_timeout_seconds = 77\nretry_backoff_seconds = 0.5\n"
        "[writes]\nmax_write_concurrency = 2\nallow_disjoint_parallel_writers = true\n"
        "[runner]\nrun_root = 'kept'\n"
    )
    plan = desk.json("run", "jobs.jsonl", "--dry-run", "--config", "all.toml")
    keys = ("concurrency", "write_concurrency", "timeout", "retries", "backoff", "run_dir")
    assert [plan[key] for key in keys] == [5, 2, 77, 4, 0.5, str((desk.folder / "kept" / "jobs").resolve())]


@codex
def test_more_than_one_writer_in_a_file_is_refused_without_the_explicit_choice(desk: Terminal) -> None:
    desk.write_rows(job(desk, "a"))
    (desk.folder / "two.toml").write_text("[writes]\nmax_write_concurrency = 2\n")
    out = desk.pool("run", "jobs.jsonl", "--dry-run", "--config", "two.toml", status=2)
    assert "allow_disjoint_parallel_writers = true" in out


@codex
def test_more_than_one_writer_by_flag_needs_the_second_flag(desk: Terminal) -> None:
    (desk.folder / "jobs.jsonl").write_text(README_WRITERS)
    out = desk.pool("run", "jobs.jsonl", "--dry-run", *PARALLEL[:4], status=2)
    assert "--allow-disjoint-parallel-writers" in out
    assert desk.json("run", "jobs.jsonl", "--dry-run", *PARALLEL)["write_concurrency"] == 2


# -- job files -------------------------------------------------------------------------------------


@codex
def test_the_rows_of_the_readme_are_read_as_they_are(desk: Terminal) -> None:
    (desk.folder / "jobs.jsonl").write_text(README_READER + README_WRITERS)
    plan = desk.json("run", "jobs.jsonl", "--dry-run")
    told = [(one["id"], one["model"], one["effort"], one["sandbox"]) for one in plan["jobs"]]
    assert told == [
        ("repo-summary", "gpt-5.6-luna", "low", "read-only"),
        ("api", "gpt-5.6-terra", "high", "workspace-write"),
        ("docs", "gpt-5.6-luna", "medium", "workspace-write"),
    ]
    assert [one["safe_retry"] for one in plan["jobs"]] == [False, False, True]


@codex
def test_models_and_efforts_are_allowed_by_the_installed_codex(desk: Terminal) -> None:
    desk.write_rows(job(desk, "a", model="gpt-2"), job(desk, "b", effort="enormous"))
    out = desk.pool("run", "jobs.jsonl", "--dry-run", status=2)
    assert "jobs.jsonl:1: model: the installed Codex has no model 'gpt-2'" in out
    assert "jobs.jsonl:2: effort: gpt-5.6-luna has no effort 'enormous'" in out


@codex
def test_every_parallel_writer_owns_a_scope_of_its_own(desk: Terminal) -> None:
    rows = [json.loads(line) for line in README_WRITERS.splitlines()]
    desk.write_rows(rows[0], {**rows[1], "ownership_scope": "src"})
    assert "may both change" in desk.pool("run", "jobs.jsonl", *PARALLEL, status=2)
    del rows[1]["ownership_scope"]
    desk.write_rows(*rows)
    assert "2: ownership_scope: missing" in desk.pool("run", "jobs.jsonl", *PARALLEL, status=2)
    desk.write_rows(rows[0], {**rows[1], "ownership_scope": ""})
    assert "2: ownership_scope: must not be empty" in desk.pool("run", "jobs.jsonl", *PARALLEL, status=2)


@codex
def test_the_launch_plan_is_validated_without_starting_anything(sim: Sim, desk: Terminal) -> None:
    example = CHECKOUT / "examples" / "jobs.read-only.jsonl"
    asked = len(sim.model.requests)
    assert "nothing has been started" in desk.pool("run", str(example), "--dry-run")
    assert len(sim.model.requests) == asked


@codex
def test_parallel_writers_run_at_once_each_in_its_scope(sim: Sim, desk: Terminal) -> None:
    rows = [
        writer(desk, name, ownership_scope=scope, verification_commands=[f"test -f {scope}/x.txt"])
        for name, scope in (("one", "src/api"), ("two", "docs"))
    ]
    both = threading.Barrier(2)

    def together(_: object) -> Any:
        both.wait(60)
        return say("written")

    for row in rows:
        sim.model.on(row["prompt"], write(f"{row['ownership_scope']}/x.txt", "x\n"), together)
    desk.write_rows(*rows)
    assert "done: 2 succeeded of 2" in desk.pool("run", "jobs.jsonl", *PARALLEL)


@codex
def test_it_runs_from_another_project(sim: Sim, desk: Terminal) -> None:
    row = job(desk, "a")
    sim.model.on(row["prompt"], say("x"))
    desk.write_rows(row)
    script = str(CHECKOUT / "scripts" / "orchestrate.py")
    assert "done: 1 succeeded of 1" in desk.program([sys.executable, script, "jobs.jsonl"])


# -- the runner ------------------------------------------------------------------------------------


@codex
@pytest.mark.parametrize("backend", ["app-server", "exec"])
def test_a_prompt_is_neither_an_argument_nor_given_to_a_shell(sim: Sim, desk: Terminal, backend: str) -> None:
    row = job(desk, f"quoted-{backend}")
    row["prompt"] += " $(touch made) `touch made` '; touch made #"
    seen: list[str] = []

    def look(request: Any) -> Any:
        seen.append(request.prompt)
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                seen.extend(word for word in process.cmdline() if "touch made" in word)
        return say("x")

    sim.model.on(row["prompt"], look)
    desk.write_rows(row)
    desk.pool("run", "jobs.jsonl", "--backend", backend)
    assert seen == [row["prompt"]]
    assert not (desk.folder / "made").exists()


@pytest.mark.long
@codex
def test_total_concurrency_is_kept_and_one_writer_works_at_a_time(sim: Sim, desk: Terminal) -> None:
    rows = [job(desk, f"r{number}") for number in range(4)]
    rows += [writer(desk, f"w{number}") for number in range(3)]
    for row in rows:
        sim.model.on(row["prompt"], say("x"))
    desk.write_rows(*rows)
    plan = desk.json("run", "jobs.jsonl", "--dry-run")
    assert (plan["concurrency"], plan["write_concurrency"]) == (3, 1)
    desk.pool("run", "jobs.jsonl")
    spans = _spans(desk)
    assert max(_at_once(spans.values())) <= 3
    assert max(_at_once(span for name, span in spans.items() if name.startswith("w"))) == 1


def _spans(desk: Terminal) -> dict[str, tuple[float, float]]:
    """When each job's only attempt began and ended."""
    shown = [desk.json("show", row["id"]) for row in map(json.loads, _rows(desk))]
    return {one["id"]: (one["attempts"][0]["startedAt"], one["attempts"][0]["endedAt"]) for one in shown}


def _rows(desk: Terminal) -> list[str]:
    return (desk.folder / "jobs.jsonl").read_text().splitlines()


def _at_once(spans: Any) -> list[int]:
    listed = list(spans)
    return [sum(begin <= start < end for begin, end in listed) for start, _ in listed]


@codex
def test_success_needs_a_completed_turn_and_an_answer(sim: Sim, desk: Terminal) -> None:
    rows = [job(desk, "answers"), job(desk, "silent"), job(desk, "cut", timeout_seconds=2)]
    sim.model.on(rows[0]["prompt"], say("x"))
    sim.model.on(rows[1]["prompt"], say("  "))
    sim.model.on(rows[2]["prompt"], stall())
    desk.write_rows(*rows)
    desk.pool("run", "jobs.jsonl", "--retries", "0", status=1)
    jobs = manifest(desk)["jobs"]
    assert {name: one["status"] for name, one in jobs.items()} == {
        "answers": "succeeded",
        "silent": "failed",
        "cut": "failed",
    }
    assert jobs["silent"]["terminal_error"] == "missing_final_output"
    assert jobs["cut"]["terminal_error"] == "timed_out"


@codex
def test_readers_are_retried_and_writers_only_when_they_say_it_is_safe(sim: Sim, desk: Terminal) -> None:
    rows = [job(desk, "reader"), writer(desk, "once"), writer(desk, "safe", safe_retry=True)]
    for row in rows:
        sim.model.on(row["prompt"], say(""))
    desk.write_rows(*rows)
    desk.pool("run", "jobs.jsonl", "--retries", "2", "--backoff", "0", status=1)
    jobs = manifest(desk)["jobs"]
    assert {name: len(one["attempts"]) for name, one in jobs.items()} == {"reader": 3, "once": 1, "safe": 3}
    assert {name: one["retry_policy"]["reason"] for name, one in jobs.items()} == {
        "reader": "read-only",
        "once": "writer-retries-disabled",
        "safe": "writer-explicitly-idempotent",
    }
    desk.pool("run", "jobs.jsonl", "--retries", "0", status=1)
    assert len(manifest(desk)["jobs"]["once"]["attempts"]) == 1


def test_each_retry_waits_twice_as_long_as_the_one_before() -> None:
    assert [backoff(2.0, tries) for tries in (1, 2, 3, 4)] == [2.0, 4.0, 8.0, 16.0]
    assert backoff(0.0, 5) == 0.0


@pytest.mark.long
@codex
def test_only_jobs_whose_output_is_still_what_was_kept_are_skipped(sim: Sim, desk: Terminal) -> None:
    rows = [job(desk, name) for name in ("intact", "damaged", "changed")]
    for row in rows:
        sim.model.on(row["prompt"], say(f"answer of {row['prompt']}"))
    desk.write_rows(*rows)
    desk.pool("run", "jobs.jsonl")
    named = desk.json("show", "damaged")["finalMessageSha256"]
    Artifacts(StateFolder.find(dict(sim.env))).delete(named)
    rows[2]["prompt"] = f"<{desk.folder.name} another>"
    sim.model.on(rows[2]["prompt"], say("another answer"))
    desk.write_rows(*rows)
    out = desk.pool("run", "jobs.jsonl")
    assert "2 jobs to run, 1 is done already" in out and "done: 3 succeeded of 3" in out
    assert desk.json("show", "damaged")["finalMessageSha256"] == named
    assert desk.json("show", "changed")["finalMessage"] == "another answer"


@codex
def test_the_manifest_names_events_answers_hashes_and_threads(sim: Sim, desk: Terminal) -> None:
    row = job(desk, "a")
    sim.model.on(row["prompt"], say("The answer."))
    desk.write_rows(row)
    desk.pool("run", "jobs.jsonl", "--backend", "exec")
    found = manifest(desk)
    run_dir = desk.folder / ".codex" / "orchestration-runs" / "jobs"
    assert (found["schema_version"], found["backend"]) == (2, "codex-exec")
    assert found["jobs_file"] == str((desk.folder / "jobs.jsonl").resolve())
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", found["codex"]["version"])
    entry = found["jobs"]["a"]
    (attempt,) = entry["attempts"]
    final = Path(entry["final_output"])
    assert final == run_dir / "jobs" / "a" / "attempt-001.final.txt"
    content = final.read_bytes()
    assert content == b"The answer."
    assert entry["final_artifact"] == {
        "path": str(final),
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    events = [json.loads(line) for line in Path(attempt["events"]).read_text().splitlines()]
    assert events[-1]["type"] == "turn.completed"
    assert Path(attempt["stderr"]).name == "attempt-001.stderr.log"
    assert entry["thread_ids"] == attempt["thread_ids"] != []
    assert entry["spec"]["prompt_sha256"] == hashlib.sha256(row["prompt"].encode()).hexdigest()
    assert len(entry["fingerprint"]) == 64
    assert attempt["turn_completed"] is True


@codex
def test_a_manifest_is_replaced_as_a_whole_and_leaves_nothing_beside(sim: Sim, desk: Terminal) -> None:
    row = job(desk, "a")
    sim.model.on(row["prompt"], say("x"))
    desk.write_rows(row)
    desk.pool("run", "jobs.jsonl")
    first = manifest(desk)
    names = sorted(path.name for path in (desk.folder / ".codex/orchestration-runs/jobs").rglob("*"))
    assert manifest(desk)["jobs"] == first["jobs"]
    assert sorted(path.name for path in (desk.folder / ".codex/orchestration-runs/jobs").rglob("*")) == names
    assert not [name for name in names if name.endswith((".tmp", ".new"))]


@codex
@pytest.mark.parametrize(
    ("backend", "label"),
    [
        ("exec", "requested-via-cli-arguments-not-runtime-attested"),
        ("app-server", "attested-by-codex-app-server"),
    ],
)
def test_a_route_is_labelled_as_it_is_known(sim: Sim, desk: Terminal, backend: str, label: str) -> None:
    row = job(desk, "a")
    sim.model.on(row["prompt"], say("x"))
    desk.write_rows(row)
    assert desk.json("run", "jobs.jsonl", "--backend", backend, "--dry-run")["route_attestation"] == label
    desk.pool("run", "jobs.jsonl", "--backend", backend)
    found = manifest(desk)
    assert found["route_attestation"] == found["jobs"]["a"]["route_attestation"] == label


@codex
def test_a_run_directory_belongs_to_its_job_file(sim: Sim, desk: Terminal) -> None:
    one, other = job(desk, "one"), job(desk, "other")
    for row in (one, other):
        sim.model.on(row["prompt"], say("x"))
    desk.write_rows(one)
    desk.write_rows(other, name="sub/jobs.jsonl")
    desk.pool("run", "jobs.jsonl")
    out = desk.pool("run", "sub/jobs.jsonl", status=2)
    assert "--run-dir" in out and len(out.strip().splitlines()) == 1
    assert "done: 1 succeeded" in desk.pool("run", "sub/jobs.jsonl", "--run-dir", "elsewhere")
    assert "1 is done already" in desk.pool("run", "jobs.jsonl")


@pytest.mark.long
@codex
def test_a_run_directory_that_was_lost_costs_nothing_that_was_done(sim: Sim, desk: Terminal) -> None:
    row = job(desk, "a")
    sim.model.on(row["prompt"], say("x"))
    desk.write_rows(row)
    desk.pool("run", "jobs.jsonl")
    shutil.rmtree(desk.folder / ".codex" / "orchestration-runs")
    assert "0 jobs to run, 1 is done already" in desk.pool("run", "jobs.jsonl")


# -- the table -------------------------------------------------------------------------------------


def test_every_test_that_the_table_names_exists_and_every_test_here_is_in_it() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", TABLE.read_text())
    assert len(named) >= 30
    for file, test in named:
        assert re.search(rf"^(async )?def {test}\(", (CHECKOUT / file).read_text(), re.MULTILINE), (
            file,
            test,
        )
    here = {name for name in globals() if name.startswith("test_")}
    here.discard("test_every_test_that_the_table_names_exists_and_every_test_here_is_in_it")
    assert here <= {test for _, test in named}
