"""Jobs as threads of the real Codex's app-server, against the scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from baton.contract.states import RunState
from baton.engine.stop import Stop, StopReason
from baton.ledger.pool_records import JobState, PoolState
from baton.process.environment import RUN_MARKER
from baton.process.tree import processes_with_marker
from baton.simulate import workers
from baton.simulate.script import claiming, say, shell, stall
from e2e.sim import Sim
from pool.shop import Shop, a_job, a_writer

pytestmark = pytest.mark.codex


def test_readers_end_with_their_message_kept_and_their_effective_route(sim: Sim, shop: Shop) -> None:
    jobs = [a_job(f"read-{number}", shop.folder.parent) for number in range(3)]
    for job in jobs:
        sim.model.on(job.prompt, say(f"answer of {job.id}"))
    end = shop.work(jobs)
    assert (end.state, end.counts) == (PoolState.DONE, {JobState.SUCCEEDED: 3})
    assert end.succeeded
    for job in jobs:
        record = shop.job(job.id)
        assert record.output is not None
        assert shop.house.artifacts.read(record.output).decode() == f"answer of {job.id}"
        (attempt,) = shop.attempts(job.id)
        assert attempt.route is not None
        assert (attempt.attested, attempt.route.model, attempt.route.effort) == (True, "gpt-5.6-luna", "low")
        assert attempt.usage is not None and attempt.usage.total_tokens == 1280
        assert attempt.log is not None
        log = (shop.house.state.root / attempt.log).read_text().splitlines()
        assert "turn/completed" in [json.loads(line)["method"] for line in log]


def test_a_reader_cannot_write_and_a_writer_only_in_its_scope(
    sim: Sim, shop: Shop, folder: Callable[[str], Path]
) -> None:
    workdir = sim.workspace("scopes", {"src/api/a.txt": "a\n", "docs/d.txt": "d\n"}).path
    reader, writer = a_job("reader", workdir), a_writer("writer", workdir, ownership_scope="src/api")
    attempt = "echo x > src/api/new.txt; echo x > docs/new.txt; echo x > ../beside.txt"
    for job in (reader, writer):
        sim.model.on(job.prompt, shell(attempt), say("tried"))
    shop.work([reader])
    assert not list(workdir.rglob("new.txt"))
    shop.work([reader, writer])
    assert [path.relative_to(workdir) for path in workdir.rglob("new.txt")] == [Path("src/api/new.txt")]
    assert not (workdir.parent / "beside.txt").exists()


def test_checks_are_run_where_the_job_worked_and_decide(
    sim: Sim, shop: Shop, folder: Callable[[str], Path]
) -> None:
    workdir = folder("checked")
    (workdir / "check.sh").write_text("echo checking; test -e made.txt; touch $PWD/by-check.txt\n")
    good = a_writer(
        "checked-good", workdir, verification_commands=("sh check.sh", ("test", "-e", "made.txt"))
    )
    bad = a_job("checked-bad", workdir, verification_commands=("test -e missing.txt",))
    reader = a_job("checked-reader", workdir, verification_commands=("touch reader.txt",))
    sim.model.on(good.prompt, shell("echo x > made.txt"), say("made"))
    sim.model.on(bad.prompt, say("I made missing.txt"))
    sim.model.on(reader.prompt, say("done"))
    end = shop.work([good, bad, reader])
    assert end.counts == {JobState.SUCCEEDED: 1, JobState.FAILED: 2}
    (attempt,) = shop.attempts("checked-good")
    assert [(check.status.value, check.sandboxed) for check in attempt.checks] == [("passed", True)] * 2
    assert attempt.checks[0].output is not None
    assert shop.house.artifacts.read(attempt.checks[0].output) == b"checking\n"
    assert (workdir / "by-check.txt").exists()
    assert shop.job("checked-bad").failure_class == "check_failed"
    # What the job may not write, its check may not either.
    assert not (workdir / "reader.txt").exists()


def test_a_job_that_was_stopped_goes_on_in_its_thread(sim: Sim, shop: Shop) -> None:
    job = a_job("cut", shop.folder.parent)
    sim.model.on(job.prompt, shell("true"), stall(), say("went on"))

    async def stop_when_it_works(stop: Stop) -> None:
        await anyio.to_thread.run_sync(
            sim.model.wait_for, lambda request: "<cut>" in request.text and bool(request.outputs)
        )
        stop.ask(StopReason.INTERRUPTED, "told to")

    first = shop.work([job], beside=stop_when_it_works)
    assert (first.state, first.counts) == (PoolState.INTERRUPTED, {JobState.QUEUED: 1})
    assert processes_with_marker(RUN_MARKER, shop.pool_id) == ()
    second = shop.work([job])
    assert second.succeeded, second
    cut, done = shop.attempts("cut")
    assert (cut.state, done.state) == ("interrupted", "succeeded")
    assert done.resumed and done.thread_id == cut.thread_id
    assert shop.job("cut").tokens == 2 * 1280


def test_a_job_served_by_another_model_has_not_succeeded(sim: Sim, shop: Shop) -> None:
    job = a_job("rerouted", shop.folder.parent)
    sim.model.on(job.prompt, claiming("gpt-4-tiny", say("done")))
    end = shop.work([job])
    assert end.counts == {JobState.FAILED: 1}
    assert shop.job("rerouted").failure_class == "route_mismatch"
    assert "gpt-4-tiny" in (shop.job("rerouted").reason or "")


def test_an_isolated_job_is_verified_and_merged_like_a_batch(sim: Sim, shop: Shop) -> None:
    workspace = sim.workspace("isolated", {"src/a.txt": "a\n", "check.sh": "grep -q new src/a.txt\n"})
    good = a_writer(
        "isolated-good",
        workspace.path,
        isolate=True,
        allowed_files=("src/",),
        verification_commands=("sh check.sh",),
    )
    bad = a_writer(
        "isolated-bad",
        workspace.path,
        isolate=True,
        allowed_files=("src/",),
        verification_commands=("sh check.sh",),
    )
    sim.model.on(good.prompt, *workers.honest({"src/a.txt": "new\n"}, ["sh check.sh"]))
    sim.model.on(bad.prompt, *workers.false_pass({"src/a.txt": "nothing\n"}, ["sh check.sh"]))
    with sim.policy(""):
        end = shop.work([good, bad], concurrency=1)
    assert end.counts == {JobState.SUCCEEDED: 1, JobState.FAILED: 1}, end
    assert workspace.read("src/a.txt") == "new\n"
    (attempt,) = shop.attempts("isolated-good")
    assert (attempt.backend, attempt.attested) == ("run", True)
    assert attempt.run_id is not None
    assert shop.house.ledger.run(attempt.run_id).state is RunState.DONE
    assert shop.job("isolated-bad").failure_class == "not_merged"
