"""Several tasks in one call: what is right lands, whatever becomes of the others, and the answer says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil
import pytest

from baton.contract.errors import InvalidInput
from baton.contract.states import Integration, TaskState, Verdict
from baton.engine.followup import AttemptKind
from baton.engine.look import open_repository
from baton.simulate.request import Request
from baton.simulate.script import Step, shell, stall
from baton.simulate.workers import escaping, false_pass, honest, report, write
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

Make = Callable[..., Workspace]


def task(name: str, objective: str, *allowed: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "objective": objective,
        "allowedFiles": [*allowed],
        "verificationCommands": ["true"],
        **more,
    }


def call(place: Workspace, tasks: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    return {"workspace": str(place.path), "tasks": [*tasks], "waitSeconds": 110, **more}


def lines(answer: Mapping[str, Any]) -> dict[str, tuple[str, str | None]]:
    """Verdict (or state) and integration of every task in an answer."""
    return {
        line["id"]: (line.get("verdict") or line["state"], line.get("integration"))
        for line in answer["tasks"]
    }


LANDED = ("verified", "applied")


def test_of_twelve_tasks_the_right_parts_land_and_the_answer_is_short(sim: Sim, workspace: Make) -> None:
    files = {f"m{number}/a.txt": f"{number}\n" for number in range(6)}
    place = workspace({**files, "shared.txt": "one\ntwo\n", "notes.txt": "mine\n", "slow/a": "", "bad/a": ""})
    tasks = [
        task(f"honest-{n}", sim.script(f"twelve {n}", *honest({f"m{n}/a.txt": "new\n"})), f"m{n}/")
        for n in range(6)
    ]
    others_done = threading.Event()
    crashed: list[int] = []

    def crash(_: Request) -> Step:
        if not crashed:
            crashed.append(kill_codex(sim, sim.only_run(crashing)))
            return stall()
        return report(files=["crash/a.txt"])

    crashing = sim.script("twelve crash", write("crash/a.txt", "again\n"), crash)
    straggling = sim.script(
        "twelve slow", write("slow/a", "late\n"), stall(others_done), report(files=["slow/a"])
    )
    tasks += [
        task("straggler", straggling, "slow/"),
        task(
            "liar",
            sim.script("twelve liar", *false_pass({"bad/a": "wrong\n"})),
            "bad/",
            verificationCommands=["grep right bad/a"],
        ),
        task("crash", crashing, "crash/"),
        task("same-1", sim.script("twelve c1", *honest({"shared.txt": "1\n"})), "shared.txt"),
        task("same-2", sim.script("twelve c2", *honest({"shared.txt": "2\n"})), "shared.txt"),
        task("escape", sim.script("twelve out", *escaping({"in/a": "in\n"}, "notes.txt")), "in/"),
    ]
    running = sim.start(call(place, tasks, maxParallel=4, allowOverlap=True))
    run_id = sim.only_run(straggling)
    until(sim, lambda: sum(one.state.at_rest for one in sim.service.house.ledger.tasks(run_id)) == 11)
    others_done.set()
    answer = running.result(120)

    assert len(json.dumps(answer).encode()) < 3_000
    seen = lines(answer)
    for name in (*(f"honest-{n}" for n in range(6)), "straggler", "crash", "escape"):
        assert seen.pop(name) == LANDED, name
    assert seen.pop("liar") == ("failed", None)
    assert sorted(seen.values()) == [LANDED, ("verified", "conflict")]
    assert answer["state"] == "held"
    assert "landed: 10 of 12" in answer["next"] and "liar" in answer["next"]

    assert [place.read(f"m{n}/a.txt") for n in range(6)] == ["new\n"] * 6
    assert place.read("slow/a") == "late\n" and place.read("crash/a.txt") == "again\n"
    assert place.read("in/a") == "in\n" and place.read("notes.txt") == "mine\n"
    assert place.read("bad/a") == ""
    winner = next(name for name, outcome in seen.items() if outcome == LANDED)
    loser = "same-2" if winner == "same-1" else "same-1"
    assert place.read("shared.txt") == f"{winner[-1]}\n"
    conflict = sim.task(run_id, loser).outcome.detail or ""
    assert "shared.txt" in conflict and winner in conflict
    assert sim.kept(run_id, "shared.txt", loser) == f"{loser[-1]}\n".encode()
    # The crash took the app-server from all who shared it: each of them recovered once.
    kinds = [attempt.kind for attempt in sim.service.house.ledger.attempts(run_id)]
    assert AttemptKind.FRESH in kinds
    for one in sim.service.house.ledger.tasks(run_id):
        past = [attempt.kind for attempt in sim.attempts(run_id, one.task_id)]
        assert past.count(AttemptKind.FRESH) + past.count(AttemptKind.RECOVERY) <= 1
        assert past.count(AttemptKind.REPAIR) <= 1


def test_a_graph_runs_in_its_order_and_a_failure_stops_only_its_own_branch(sim: Sim, workspace: Make) -> None:
    place = workspace({"base.txt": "base\n"})
    diamond = [
        task(
            "join",
            sim.script("graph d", shell("cat b/x c/x > d.txt"), report(files=["d.txt"])),
            "d.txt",
            dependsOn=["left", "right"],
            verificationCommands=["grep left d.txt", "grep right d.txt", "test -f a.txt"],
        ),
        task("top", sim.script("graph a", *honest({"a.txt": "top\n"})), "a.txt"),
        *(
            task(
                name,
                sim.script(
                    f"graph {name}",
                    shell(f"grep top a.txt && mkdir -p {at} && echo {name} > {at}/x"),
                    report(),
                ),
                f"{at}/",
                dependsOn=["top"],
            )
            for name, at in (("left", "b"), ("right", "c"))
        ),
    ]
    failing = [
        task("broken", sim.script("graph e", report()), "e/"),
        task("after", sim.script("graph f", *honest({"f/x": "f\n"})), "f/", dependsOn=["broken"]),
        task("last", sim.script("graph g", *honest({"g/x": "g\n"})), "g/", dependsOn=["after", "top"]),
    ]
    answer = sim.delegate(call(place, [*diamond, *failing]))
    assert lines(answer) == {
        **dict.fromkeys(("join", "top", "left", "right"), LANDED),
        "broken": ("no_change", None),
        "after": ("skipped", None),
        "last": ("skipped", None),
    }
    assert place.read("d.txt") == "left\nright\n"
    why = {line["id"]: line.get("why", "") for line in answer["tasks"]}
    assert "broken is not verified (no_change): a change is required" in why["after"]
    assert "after is not verified (skipped)" in why["last"]
    assert "landed: 4 of 7" in answer["next"] and "skipped: after, last" in answer["next"]
    assert sim.task(answer["runId"], "after").state is TaskState.SKIPPED
    assert not sim.attempts(answer["runId"], "after")


def test_sequential_tasks_see_what_those_before_them_did(sim: Sim, workspace: Make) -> None:
    place = workspace({"log.txt": "0\n"})
    tasks = [
        task(f"s{n}", sim.script(f"sequence {n}", shell(f"echo {n} >> log.txt"), report()), "log.txt")
        for n in (1, 2, 3)
    ]
    answer = sim.delegate(call(place, tasks, mode="sequential"))
    assert set(lines(answer).values()) == {LANDED}
    assert place.read("log.txt") == "0\n1\n2\n3\n"


def test_results_that_only_fail_together_are_told_apart_and_the_others_land(
    sim: Sim, workspace: Make
) -> None:
    place = workspace({"a/n": "0\n", "b/n": "0\n", "c/n": "0\n"})
    # Together a and b break it; each alone passes.
    check = "sh -c 'test $(cat a/n) -eq 0 || test $(cat b/n) -eq 0'"
    tasks = [
        task(
            name,
            sim.script(f"together {name}", *honest({f"{name}/n": "1\n"})),
            f"{name}/",
            verificationCommands=[check],
        )
        for name in ("a", "b", "c")
    ]
    answer = sim.delegate(call(place, tasks))
    assert lines(answer) == {"a": LANDED, "b": ("verified", "held"), "c": LANDED}
    (line,) = [line for line in answer["tasks"] if line["id"] == "b"]
    assert "does not go together" in line["why"]
    assert (place.read("a/n"), place.read("b/n"), place.read("c/n")) == ("1\n", "0\n", "1\n")


def test_held_results_land_by_name_and_never_without_what_they_build_on(sim: Sim, workspace: Make) -> None:
    place = workspace({"keep": ""})
    tasks = [
        task("one", sim.script("named 1", *honest({"one": "1\n"})), "one"),
        task("two", sim.script("named 2", shell("cat one > two"), report()), "two", dependsOn=["one"]),
        task("three", sim.script("named 3", *honest({"three": "3\n"})), "three"),
    ]
    answer = sim.delegate(call(place, tasks, integrate="hold"))
    run_id = answer["runId"]
    assert set(lines(answer).values()) == {("verified", "held")} and "held: one, two, three" in answer["next"]
    assert set(place.contents()) == {"keep"}
    sim.control(run_id, "integrate", ["two"])
    assert "builds on the result of one" in (sim.task(run_id, "two").outcome.detail or "")
    assert set(place.contents()) == {"keep"}
    sim.control(run_id, "integrate", ["three"])
    assert set(place.contents()) == {"keep", "three"}
    answer = sim.control(run_id, "integrate")
    assert set(lines(answer).values()) == {LANDED} and answer["state"] == "done"
    assert place.read("two") == "1\n"


def test_a_failing_check_is_told_to_the_worker_once_and_what_it_mends_lands(
    sim: Sim, workspace: Make
) -> None:
    place = workspace({"src/a": "0\n"})
    asked: list[str] = []

    def mend(request: Request) -> Step:
        asked.append(request.prompt)
        return write("src/a", "right\n")

    objective = sim.script("mends", write("src/a", "wrong\n"), report(), mend, report())
    check = "sh -c 'grep right src/a || { echo it must say right; exit 1; }'"
    other = task("other", sim.script("mends not", *honest({"b": "b\n"})), "b")
    answer = sim.delegate(
        call(place, [task("mended", objective, "src/", verificationCommands=[check]), other])
    )
    assert set(lines(answer).values()) == {LANDED}
    assert place.read("src/a") == "right\n"
    assert len(asked) == 1 and "it must say right" in asked[0] and objective not in asked[0]
    run_id = answer["runId"]
    first, second = sim.attempts(run_id, "mended")
    assert first.thread_id == second.thread_id and second.kind == AttemptKind.REPAIR
    told = sim.inspect(run_id, "events", taskId="mended", limit=20_000)["text"]
    planned = [json.loads(line) for line in told.splitlines() if "attempt.planned" in line]
    assert [event["attemptKind"] for event in planned] == ["first", "repair"]
    assert "a check failed on a claimed PASS" in planned[1]["why"]


def test_workers_of_two_runs_share_the_places_of_the_machine(sim: Sim, workspace: Make) -> None:
    at_work: set[str] = set()
    most, began = [0], []
    lock = threading.Lock()

    def begin(request: Request) -> Step:
        with lock:
            at_work.add(request.thread_id)
            most[0] = max(most[0], len(at_work))
            began.append(request.prompt.partition("<queue ")[2][:1])
        return shell("echo x > f$(basename $PWD).txt")

    def end(request: Request) -> Step:
        with lock:
            at_work.discard(request.thread_id)
        return report()

    def batch(name: str) -> dict[str, Any]:
        place = workspace({f"{name}{n}/a": "" for n in range(4)})
        made = []
        for n in range(4):
            steps = (begin, shell(f"echo x > {name}{n}/a"), end)
            made.append(task(f"t{n}", sim.script(f"queue {name}{n}", *steps), f"{name}{n}/"))
        return call(place, made)

    with sim.policy("[concurrency]\nmax_workers = 2\n"):
        running = [sim.start(batch(name)) for name in ("x", "y")]
        answers = [one.result(120) for one in running]
    assert [set(lines(answer).values()) for answer in answers] == [{LANDED}, {LANDED}]
    assert most[0] == 2
    # Neither run waits until the other has had all its turns.
    assert "y" in began[:4] and "x" in began[:4]
    assert sim.service.house.ledger.tickets() == []


def test_what_would_happen_is_told_and_nothing_is_made(sim: Sim, workspace: Make) -> None:
    place = workspace({"src/a.py": "", "src/b.py": "", "docs/x.md": ""})
    tasks = [
        task("code", "code", "src/", forbiddenFiles=["src/b.py"], verificationCommands=["python -m pytest"]),
        task("text", "text", "docs/*.md", "src/a.py", effort="low", dependsOn=[]),
        task("after", "after", "new/", dependsOn=["code"]),
    ]
    with pytest.raises(InvalidInput, match=r"tasks.code and tasks.text may both change src/a.py"):
        sim.delegate(call(place, tasks, dryRun=True))
    before = [run.run_id for run in sim.service.house.ledger.runs(limit=500)]
    shown = sim.delegate(call(place, tasks, dryRun=True, allowOverlap=True, maxParallel=2))
    assert [run.run_id for run in sim.service.house.ledger.runs(limit=500)] == before
    assert shown["base"] == place.git("rev-parse", "HEAD").strip()
    assert shown["maxParallel"] == 2 and shown["scope"] == "prevented"
    assert any("src/a.py" in note for note in shown["notes"])
    code, text, after = shown["tasks"]
    assert code["checks"] == ["python -m pytest"] and code["model"] and code["effort"]
    assert [line.partition(":")[0] for line in code["scope"]] == ["src/", "src/b.py"]
    assert code["writable"] == ["src/"] and code["readOnlyInside"] == 1
    assert text["effort"] == "low" and after["dependsOn"] == ["code"]
    assert not (place.path / "new").exists()


def test_scopes_that_meet_are_refused_with_a_path_unless_one_waits(sim: Sim, workspace: Make) -> None:
    place = workspace({"src/a.py": ""})
    first = task("first", sim.script("meet 1", *honest({"src/a.py": "1\n"})), "src/")
    second = task("second", sim.script("meet 2", *honest({"src/a.py": "2\n"})), "src/*.py")
    with pytest.raises(InvalidInput, match=r"src/a\.py.*allowOverlap"):
        sim.delegate(call(place, [first, second]))
    answer = sim.delegate(call(place, [first, {**second, "dependsOn": ["first"]}]))
    assert set(lines(answer).values()) == {LANDED}
    assert place.read("src/a.py") == "2\n"


def test_what_a_run_merged_can_be_fetched_by_ref(sim: Sim, workspace: Make) -> None:
    place = workspace({"a": "", "b": ""})
    tasks = [task(name, sim.script(f"ref {name}", *honest({name: "new\n"})), name) for name in ("a", "b")]
    answer = sim.delegate(call(place, tasks))
    run = sim.run(answer["runId"])
    repo = open_repository(sim.service.house, run)
    merge = f"refs/runs/{run.run_id}/merge/1"
    parents = repo.run(["rev-parse", f"{merge}^@"]).stdout.decode().split()
    kept = [sim.task(run.run_id, name).result for name in ("a", "b")]
    assert parents[0] == repo.resolve(f"{merge}-onto")
    assert parents[1:] == [one.evidence.commit for one in kept if one is not None]
    assert run.integration is Integration.APPLIED and sim.task(run.run_id, "a").verdict is Verdict.VERIFIED


def kill_codex(sim: Sim, run_id: str) -> int:
    """SIGKILL for the app-server of a run; its pid."""
    guards = [one.pid for one in sim.service.house.ledger.processes(run_id) if one.kind == "app-server"]
    (server,) = [child for guard in guards for child in psutil.Process(guard).children()]
    server.kill()
    return server.pid


def until(sim: Sim, true: Callable[[], bool]) -> None:
    """Wait for something of the record, for as long as anything moves in it."""
    ledger = sim.service.house.ledger
    version = ledger.data_version()
    while not true():
        moved = ledger.wait_for_change(version, 60.0)
        assert moved != version, "nothing moves any more"
        version = moved
