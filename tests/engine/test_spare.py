"""A runner that waits takes a run with its lock, ends with its session, and is never relied on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import baton.engine.spare
from baton.engine.house import House
from baton.engine.launch import start_runner
from baton.engine.spare import SpareRunner
from baton.ledger.locks import FileLock, is_held

RUN = "rabcdefgh"

SERVER = Path(__file__).parents[2] / "server"


@pytest.fixture
def house() -> Iterator[House]:
    with House.open() as opened:
        yield opened


@pytest.fixture
def spare(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpareRunner]:
    # It has to load first, which a busy machine may take long for.
    monkeypatch.setattr(baton.engine.spare, "TAKE_SECONDS", 60.0)
    made = SpareRunner(house)
    made.prepare()
    yield made
    made.close()


def process(spare: SpareRunner) -> subprocess.Popen[bytes]:
    assert spare._waiting is not None
    return spare._waiting[0]


def test_it_takes_the_run_with_its_lock_and_tells_in_the_runs_own_log(
    house: House, spare: SpareRunner, tmp_path: Path
) -> None:
    runner, path, log = process(spare), house.state.run_lock(RUN), tmp_path / "log"
    lock = FileLock(path)
    lock.acquire(1)
    os.kill(runner.pid, signal.SIGSTOP)
    handing = subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -CONT {runner.pid}"])
    assert spare.give(RUN, lock, log)
    lock.release()
    # Nobody has recorded such a run: it says so and ends, and only then is the lock free.
    assert runner.wait(60) == 1
    assert f"no run '{RUN}'" in log.read_text()
    assert not is_held(path)
    assert handing.wait(10) == 0
    assert not spare.give(RUN, lock, log)


def test_it_ends_with_its_session(spare: SpareRunner) -> None:
    runner = process(spare)
    spare.close()
    assert runner.wait(60) == 0


def test_a_spare_that_is_gone_is_replaced_by_a_runner_of_the_usual_kind(
    house: House, spare: SpareRunner
) -> None:
    process(spare).kill()
    lock = FileLock(house.state.run_lock(RUN))
    lock.acquire(1)
    start_runner(house, RUN, lock, spare)
    log = house.state.root / "logs" / f"{RUN}.log"
    until = time.monotonic() + 60.0
    while f"no run '{RUN}'" not in log.read_text():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_it_is_found_by_the_run_it_has_taken() -> None:
    """Others look for a run's processes by the environment these were started with."""
    look = "import baton.engine.spare as s; print(s._mark('rbbbbbbbb'), open('/proc/self/environ').read())"
    done = subprocess.run(
        [sys.executable, "-c", look],
        env={"PYTHONPATH": str(SERVER), "BATON_RUN": "raaaaaaaa"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "True" in done.stdout and "BATON_RUN=rbbbbbbbb" in done.stdout
    assert "raaaaaaaa" not in done.stdout
