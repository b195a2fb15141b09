"""Pools that have had their time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from baton.contract.errors import InvalidInput, NotFound
from baton.engine.retention import DAY
from baton.engine.stop import Stop
from baton.pool.backend import Assignment, AttemptOutcome
from baton.pool.collect import collect_pools
from pool.shop import ScriptedBackend, Shop, a_job, done

THREAD = "01a22bc1-bfc6-7381-817b-ac973045a5f9"
OTHER = "01a22bc1-bfc6-7381-817b-ac973045a5f0"


def rollout(shop: Shop, thread: str) -> Path:
    folder = shop.house.state.codex_home / "sessions" / "2026" / "01" / "31"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-2026-01-31T10-20-30-{thread}.jsonl"
    path.touch()
    return path


def grown_old(shop: Shop, days: float) -> None:
    shop.house.ledger.update_pool(shop.pool_id, ended_at=time.time() - days * DAY)


def test_an_old_pool_goes_with_its_logs_and_threads_and_nothing_else(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    def act(assignment: Assignment) -> AttemptOutcome:
        assignment.log.parent.mkdir(parents=True, exist_ok=True)
        assignment.log.write_text("{}\n")
        return done(thread_id=THREAD)

    jobs = [a_job("one", folder("d"))]
    bare_shop.work(jobs, backend=ScriptedBackend(otherwise=act))
    own, foreign = rollout(bare_shop, THREAD), rollout(bare_shop, OTHER)
    house = bare_shop.house
    assert collect_pools(house, days=30) == []
    grown_old(bare_shop, 31)
    assert [pool.pool_id for pool in collect_pools(house, days=30, dry_run=True)] == [bare_shop.pool_id]
    assert house.state.pool_folder(bare_shop.pool_id).exists()
    assert [pool.pool_id for pool in collect_pools(house, days=30)] == [bare_shop.pool_id]
    assert not house.state.pool_folder(bare_shop.pool_id).exists()
    assert (own.exists(), foreign.exists()) == (False, True)
    with pytest.raises(NotFound):
        house.ledger.pool(bare_shop.pool_id)
    # Which of its writers have written is not known any more: it does not begin anew by itself.
    with pytest.raises(InvalidInput, match="--run-dir"):
        bare_shop.work(jobs, backend=ScriptedBackend())


def test_a_pool_that_is_worked_off_stays_however_old(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    looked = anyio.Event()

    async def beside(stop: Stop) -> None:
        while "one" not in backend.running:
            await anyio.sleep(0)
        grown_old(bare_shop, 1000)
        assert collect_pools(bare_shop.house, days=1) == []
        looked.set()

    async def act(assignment: Assignment) -> AttemptOutcome:
        await looked.wait()
        return done()

    backend = ScriptedBackend(otherwise=act)
    assert bare_shop.work([a_job("one", folder("d"))], backend=backend, beside=beside).succeeded
