"""A pool in a process of its own: what signals do to it, and that nothing is left."""

from __future__ import annotations

import os
import signal
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from baton.ledger.pool_records import JobState, PoolState
from baton.pool.recover import recover_pools
from baton.pool.status import pool_status
from baton.process.environment import RUN_MARKER
from baton.process.tree import processes_with_marker
from baton.simulate.script import say, shell, stall
from chaos._machine import Machine
from chaos._pool_machine import PoolPlan, start_pool
from e2e.sim import Sim
from pool.shop import Shop, a_job, a_writer

pytestmark = pytest.mark.codex

DEADLINE = 60.0


def started(sim: Sim, shop: Shop, name: str, *, writer: bool = True) -> BaseProcess:
    """A pool whose reader and, unless told otherwise, writer are at work and say nothing more."""
    shop.folder.mkdir(parents=True)
    shop.jobs_file.touch()
    jobs = [a_job(f"{name}-reader", shop.folder.parent)]
    if writer:
        jobs.append(a_writer(f"{name}-writer", shop.folder))
    for job in jobs:
        sim.model.on(job.prompt, shell("true"), stall(), say("done"), say("done"))
    machine = Machine.__new__(Machine)
    machine.env = sim.env
    process = start_pool(machine, PoolPlan(name, shop.folder, (), jobs))
    for job in jobs:
        sim.model.wait_for(
            lambda request, prompt=job.prompt: prompt in request.text and bool(request.outputs),  # type: ignore[misc]
            DEADLINE,
        )
    (pool,) = [one for one in shop.house.ledger.pools(-1) if Path(one.run_dir).parent == shop.folder]
    shop.pool_id = pool.pool_id
    return process


def send(process: BaseProcess, number: signal.Signals) -> None:
    assert process.pid is not None
    os.kill(process.pid, number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_gently_and_nothing_is_left(sim: Sim, shop: Shop, number: signal.Signals) -> None:
    name = f"gentle-{number.name.lower()}"
    process = started(sim, shop, name, writer=False)
    send(process, number)
    process.join(DEADLINE)
    assert process.exitcode == 0
    assert processes_with_marker(RUN_MARKER, shop.pool_id) == ()
    status = pool_status(shop.house, shop.pool_id)
    assert status.record.state is PoolState.INTERRUPTED
    assert status.record.note == f"told to stop ({number.name})"
    assert shop.state(f"{name}-reader") is JobState.QUEUED
    assert shop.house.ledger.open_pool_attempts(shop.pool_id) == []


@pytest.mark.long
def test_a_writer_that_does_not_finish_in_its_grace_is_ended_and_waits_to_be_named(
    sim: Sim, shop: Shop
) -> None:
    process = started(sim, shop, "grace")
    send(process, signal.SIGTERM)
    process.join(DEADLINE)
    assert process.exitcode == 0
    assert processes_with_marker(RUN_MARKER, shop.pool_id) == ()
    assert shop.state("grace-reader") is JobState.QUEUED
    assert shop.state("grace-writer") is JobState.INTERRUPTED


def test_a_second_signal_ends_it_at_once_and_the_next_start_settles_it(sim: Sim, shop: Shop) -> None:
    process = started(sim, shop, "forced")
    send(process, signal.SIGTERM)
    version = shop.house.ledger.data_version()
    while shop.state("forced-reader") is JobState.RUNNING:
        version = shop.house.ledger.wait_for_change(version, DEADLINE)
    # The writer has its grace; nobody waits for that.
    send(process, signal.SIGTERM)
    process.join(DEADLINE)
    assert process.exitcode == 130
    assert processes_with_marker(RUN_MARKER, shop.pool_id) == ()
    assert shop.state("forced-writer") is JobState.RUNNING
    assert recover_pools(shop.house) == [shop.pool_id]
    assert shop.state("forced-writer") is JobState.INTERRUPTED


def test_when_it_is_killed_nothing_outlives_the_next_start(sim: Sim, shop: Shop) -> None:
    process = started(sim, shop, "killed")
    process.kill()
    process.join(DEADLINE)
    assert not pool_status(shop.house, shop.pool_id).alive
    recover_pools(shop.house)
    assert processes_with_marker(RUN_MARKER, shop.pool_id) == ()
    assert shop.state("killed-reader") is JobState.QUEUED
    assert shop.state("killed-writer") is JobState.INTERRUPTED
    assert shop.job("killed-reader").thread_id is not None
