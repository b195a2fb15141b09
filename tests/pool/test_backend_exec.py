"""Jobs as processes of the real `codex exec`, against the scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from baton.engine.stop import Stop, StopReason
from baton.ledger.pool_records import JobState, PoolState
from baton.process.environment import RUN_MARKER
from baton.process.tree import processes_with_marker
from baton.simulate.script import fail, say, shell, stall
from e2e.sim import Sim
from pool.shop import Shop, a_job, a_writer

pytestmark = pytest.mark.codex


def test_a_job_ends_with_its_message_and_a_route_that_is_only_requested(sim: Sim, shop: Shop) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    schema |= {"additionalProperties": False}
    job = a_job("one", shop.folder.parent, output_schema=schema, prompt="<exec one> $(touch evil) `x` 'q'")
    sim.model.on("<exec one>", say({"n": 3}))
    end = shop.work([job], backend_name="exec")
    assert end.succeeded, end
    (attempt,) = shop.attempts("one")
    assert (attempt.backend, attempt.attested) == ("exec", False)
    assert attempt.route is not None
    assert (attempt.route.asked_model, attempt.route.model) == ("gpt-5.6-luna", None)
    assert attempt.usage is not None and attempt.usage.total_tokens == 1280
    assert attempt.thread_id is not None and attempt.log is not None
    log = (shop.house.state.root / attempt.log).read_text().splitlines()
    assert [json.loads(line)["type"] for line in log][-1] == "turn.completed"
    request = next(one for one in sim.model.requests if one.thread_id == attempt.thread_id)
    assert (request.model, request.effort) == ("gpt-5.6-luna", "low")
    assert request.prompt == job.prompt
    assert request.output_schema == schema


def test_the_sandbox_holds_the_scope(sim: Sim, shop: Shop) -> None:
    workdir = sim.workspace("exec-scopes", {"src/api/a.txt": "a\n", "docs/d.txt": "d\n"}, git=False).path
    reader = a_job("exec-reader", workdir)
    writer = a_writer("exec-writer", workdir, ownership_scope="src/api")
    attempt = "echo x > src/api/new.txt; echo x > docs/new.txt; echo x > ../beside.txt"
    for job in (reader, writer):
        sim.model.on(job.prompt, shell(attempt), say("tried"))
    shop.work([reader], backend_name="exec")
    assert not list(workdir.rglob("new.txt"))
    shop.work([reader, writer], backend_name="exec")
    assert [path.relative_to(workdir) for path in workdir.rglob("new.txt")] == [Path("src/api/new.txt")]
    assert not (workdir.parent / "beside.txt").exists()


def test_a_failed_turn_is_told_by_its_class(sim: Sim, shop: Shop) -> None:
    job = a_job("exec-bad", shop.folder.parent)
    sim.model.on(job.prompt, fail(400, {"error": {"message": "bad", "type": "invalid_request_error"}}))
    end = shop.work([job], backend_name="exec")
    assert end.counts == {JobState.FAILED: 1}
    assert shop.job("exec-bad").failure_class == "bad_request"


def test_a_job_that_was_stopped_goes_on_in_its_thread(sim: Sim, shop: Shop) -> None:
    job = a_job("exec-cut", shop.folder.parent)
    sim.model.on(job.prompt, shell("true"), stall(), say("went on"))

    async def stop_when_it_works(stop: Stop) -> None:
        await anyio.to_thread.run_sync(
            sim.model.wait_for, lambda request: "<exec-cut>" in request.text and bool(request.outputs)
        )
        stop.ask(StopReason.INTERRUPTED, "told to")

    first = shop.work([job], backend_name="exec", beside=stop_when_it_works)
    assert (first.state, first.counts) == (PoolState.INTERRUPTED, {JobState.QUEUED: 1})
    assert processes_with_marker(RUN_MARKER, shop.pool_id) == ()
    second = shop.work([job], backend_name="exec")
    assert second.succeeded, second
    cut, done = shop.attempts("exec-cut")
    assert cut.state == "interrupted"
    assert done.resumed and done.thread_id == cut.thread_id


def test_a_job_that_says_nothing_ends_at_the_idle_deadline(
    sim: Sim, shop: Shop, folder: Callable[[str], Path]
) -> None:
    job = a_job("exec-idle", folder("idle"))
    sim.model.on(job.prompt, stall())
    end = shop.work([job], backend_name="exec", idle_seconds=1.0, retries=0)
    assert end.counts == {JobState.FAILED: 1}
    assert shop.job("exec-idle").failure_class == "idle_timeout"
    assert processes_with_marker(RUN_MARKER, shop.pool_id) == ()
