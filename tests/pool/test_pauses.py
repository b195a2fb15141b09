"""A limit of the rate that somebody on this machine met: who else asks for that model waits as well."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from baton.contract.evidence import TurnFailure
from baton.contract.states import FailureClass
from baton.engine.stop import Stop, StopReason
from baton.ledger.pool_records import JobState, PoolState
from baton.pool.backend import Assignment, AttemptOutcome
from baton.pool.jobs import Job, JobRoute
from pool.shop import ScriptedBackend, Shop, a_job, done

LUNA, TERRA = "gpt-5.6-luna", "gpt-5.6-terra"


def of_terra(job: Job) -> Job:
    return replace(job, route=JobRoute(TERRA, "low", "terra"))


def limited(kind: FailureClass, after: float | None) -> Callable[[Assignment], AttemptOutcome]:
    """Is refused once, then ends well."""
    left = [1]

    def act(assignment: Assignment) -> AttemptOutcome:
        if not left[0]:
            return done()
        left[0] = 0
        return AttemptOutcome(
            failure=TurnFailure(failure_class=kind, message="no", retry_after_seconds=after)
        )

    return act


@pytest.mark.parametrize("after", [None, 0.2])
def test_a_limit_that_a_job_met_is_noted_for_its_model(
    bare_shop: Shop, folder: Callable[[str], Path], after: float | None
) -> None:
    seen: list[tuple[str, bool]] = []
    act = limited(FailureClass.RATE_LIMIT, after)
    backend = ScriptedBackend(otherwise=act)
    ledger = bare_shop.house.ledger
    noted = ledger.pause_model

    def note(model: str, until: float, why: str) -> None:
        seen.append((model, until > time.time()))
        noted(model, until, why)

    ledger.pause_model = note  # type: ignore[method-assign]
    end = bare_shop.work([a_job("one", folder("d"))], backend=backend)
    assert (end.succeeded, backend.times("one")) == (True, 2)
    assert seen == [(LUNA, True)]
    assert ledger.model_pause(TERRA) is None


@pytest.mark.parametrize("kind", [FailureClass.OVERLOADED, FailureClass.USAGE_LIMIT, FailureClass.CRASH])
def test_what_is_no_limit_of_the_rate_is_nobody_elses(
    bare_shop: Shop, folder: Callable[[str], Path], kind: FailureClass
) -> None:
    bare_shop.work([a_job("one", folder("d"))], backend=ScriptedBackend(otherwise=limited(kind, 0.1)))
    assert bare_shop.house.ledger.model_pauses() == []


def test_a_wait_that_is_too_long_for_the_pool_is_noted_all_the_same(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    backend = ScriptedBackend(otherwise=limited(FailureClass.RATE_LIMIT, 3600))
    end = bare_shop.work([a_job("one", folder("d"))], backend=backend, pause_seconds=60)
    pause = bare_shop.house.ledger.model_pause(LUNA)
    assert end.state is PoolState.STOPPED
    assert pause is not None and pause.until - time.time() > 3500


def test_jobs_of_a_model_that_another_run_was_told_to_wait_for_start_after_its_time(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    until = time.time() + 0.4
    bare_shop.house.ledger.pause_model(LUNA, until, "limited")
    at: dict[str, float] = {}

    def act(assignment: Assignment) -> AttemptOutcome:
        at[assignment.job.id] = time.time()
        return done()

    workdir = folder("d")
    jobs = [a_job("luna", workdir), of_terra(a_job("terra", workdir)), a_job("too", workdir)]
    end = bare_shop.work(jobs, backend=ScriptedBackend(otherwise=act), pause_seconds=60)
    assert end.succeeded
    assert next(iter(at)) == "terra" and min(at["luna"], at["too"]) >= until
    paused = [event for event in bare_shop.told if event.kind == "pool.paused"]
    assert [event.data for event in paused] == [{"until": until, "why": f"limited of {LUNA}"}]
    assert "pool.resumed" in bare_shop.kinds()


def test_a_pause_that_comes_while_the_pool_works_holds_what_would_start_next(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    until: list[float] = []
    at: dict[str, float] = {}

    def act(assignment: Assignment) -> AttemptOutcome:
        at[assignment.job.id] = time.time()
        if not until:
            until.append(time.time() + 0.3)
            bare_shop.house.ledger.pause_model(LUNA, until[0], "limited")
        return done()

    jobs = [a_job(f"j{number}", folder(f"d{number}")) for number in range(3)]
    end = bare_shop.work(jobs, backend=ScriptedBackend(otherwise=act), concurrency=1)
    assert end.succeeded and at["j0"] < until[0] <= min(at["j1"], at["j2"])


def test_a_long_pause_stops_a_pool_only_when_it_came_after_its_start(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    ledger = bare_shop.house.ledger
    ledger.pause_model(LUNA, time.time() + 3600, "limited")
    jobs = [a_job("j0", folder("d0"))]
    assert bare_shop.work(jobs, backend=ScriptedBackend(), pause_seconds=60).succeeded

    def act(assignment: Assignment) -> AttemptOutcome:
        ledger.pause_model(LUNA, time.time() + 7200, "limited")
        return done()

    jobs += [a_job(f"j{number}", folder(f"d{number}")) for number in range(1, 4)]
    end = bare_shop.work(jobs, backend=ScriptedBackend(otherwise=act), concurrency=1, pause_seconds=60)
    assert (end.state, end.note) == (PoolState.STOPPED, f"limited of {LUNA}")
    assert end.back_at is not None and end.back_at - time.time() > 7000
    assert end.counts == {JobState.SUCCEEDED: 2, JobState.QUEUED: 2}
    again = bare_shop.work(jobs, backend=ScriptedBackend(), pause_seconds=60)
    assert again.succeeded


def test_a_pool_whose_model_is_paused_can_be_stopped(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    bare_shop.house.ledger.pause_model(LUNA, time.time() + 50, "limited")

    async def beside(stop: Stop) -> None:
        while "pool.paused" not in bare_shop.kinds():
            await anyio.sleep(0.01)
        stop.ask(StopReason.INTERRUPTED, "told to stop")

    backend = ScriptedBackend()
    end = bare_shop.work([a_job("one", folder("d"))], backend=backend, beside=beside, pause_seconds=60)
    assert (end.state, end.counts, backend.began) == (PoolState.INTERRUPTED, {JobState.QUEUED: 1}, [])
