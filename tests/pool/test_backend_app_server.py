"""Jobs as threads of the real Codex's app-server, against the scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from baton.ledger.pool_records import JobState, PoolState
from baton.simulate.script import say, shell
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
