"""A pool from its first start to its end, over invocations; the attempts are scripted, all else is real."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from baton.contract.errors import Busy, InvalidInput, StateUnavailable, WrongState
from baton.contract.evidence import TurnFailure, Usage
from baton.contract.states import FailureClass
from baton.engine.house import House
from baton.engine.stop import Stop, StopReason
from baton.ledger.pool_records import JobState, PoolAttemptRecord, PoolState
from baton.pool.backend import Assignment, AttemptOutcome
from baton.pool.control import ask_again, cancel, find_pool
from baton.pool.events import PoolEvent
from baton.pool.look import job_json, job_lines
from baton.pool.opening import IDENTITY_FILE, open_pool
from baton.pool.recover import recover_pools
from baton.pool.status import PoolStatus, pool_status
from pool.shop import ScriptedBackend, Shop, a_job, a_writer, done, some_settings

Act = Callable[[Assignment], Any]


def failing(kind: FailureClass, *, times: int = 1000, after: float | None = None, **fields: Any) -> Act:
    """Fails so often, then ends well."""
    left = [times]

    def act(assignment: Assignment) -> AttemptOutcome:
        assignment.on_thread("thread-1")
        if not left[0]:
            return done(thread_id="thread-1")
        left[0] -= 1
        failure = TurnFailure(failure_class=kind, message=f"said {kind.value}", retry_after_seconds=after)
        return AttemptOutcome(failure=failure, thread_id="thread-1", **fields)

    return act


def until_halted(began: anyio.Event | None = None) -> Act:
    """Works until it is told to stop."""

    async def act(assignment: Assignment) -> AttemptOutcome:
        assignment.on_thread("thread-1")
        if began is not None:
            began.set()
        await assignment.halt.wait()
        return AttemptOutcome(interrupted=True, thread_id="thread-1")

    return act


# -- success -------------------------------------------------------------------------------------------


def test_every_job_runs_once_and_its_output_is_kept(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    jobs = [a_job(f"j{number}", folder(f"d{number}")) for number in range(20)]
    four = anyio.Event()

    async def act(assignment: Assignment) -> AttemptOutcome:
        if len(backend.running) == 4:
            four.set()
        await four.wait()
        return done(f"answer of {assignment.job.id}")

    backend = ScriptedBackend(otherwise=act)
    end = bare_shop.work(jobs, backend=backend)
    assert (end.state, end.counts, end.succeeded) == (PoolState.DONE, {JobState.SUCCEEDED: 20}, True)
    assert sorted(name for name, _ in backend.began) == sorted(job.id for job in jobs)
    for job in jobs:
        record = bare_shop.job(job.id)
        assert record.output is not None
        kept = bare_shop.house.artifacts.read(record.output)
        assert (kept.decode(), record.output_bytes) == (f"answer of {job.id}", len(kept))
    assert max(map(len, backend.together)) == 4


@pytest.mark.parametrize(
    ("outcome", "trouble"),
    [
        (done(" \n"), "no_message"),
        (AttemptOutcome(completed=True), "no_message"),
        (done("no json"), "schema"),
        (done('{"n": "three"}'), "schema"),
        (AttemptOutcome(message='{"n": 3}'), "other"),
    ],
)
def test_without_evidence_nothing_has_succeeded(
    bare_shop: Shop, folder: Callable[[str], Path], outcome: AttemptOutcome, trouble: str
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    backend = ScriptedBackend(otherwise=lambda one: outcome)
    end = bare_shop.work([a_job("one", folder("d"), output_schema=schema)], backend=backend)
    assert (end.counts, end.succeeded) == ({JobState.FAILED: 1}, False)
    assert bare_shop.job("one").failure_class == trouble
    assert backend.times("one") == 2
    assert end.failed == (("one", bare_shop.job("one").reason),)


def test_a_message_that_satisfies_the_schema_is_enough(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    backend = ScriptedBackend(otherwise=lambda one: done('{"n": 3}'))
    assert bare_shop.work([a_job("one", folder("d"), output_schema=schema)], backend=backend).succeeded


# -- again ---------------------------------------------------------------------------------------------


def test_a_second_invocation_runs_only_what_is_left_changed_or_new(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    workdir = folder("d")
    first = [a_job("same", workdir), a_job("changed", workdir), a_job("gone", workdir)]
    bare_shop.work(first, backend=ScriptedBackend())
    pool_id = bare_shop.pool_id
    backend = ScriptedBackend()
    end = bare_shop.work(
        [a_job("new", workdir), a_job("same", workdir), a_job("changed", workdir, prompt="other")],
        backend=backend,
    )
    assert bare_shop.pool_id == pool_id
    assert sorted(name for name, _ in backend.began) == ["changed", "new"]
    assert end.counts == {JobState.SUCCEEDED: 3, JobState.DROPPED: 1}
    assert end.succeeded
    assert [attempt.attempt for attempt in bare_shop.attempts("changed")] == [1, 2]


def test_a_success_whose_output_is_damaged_or_gone_is_no_success_any_more(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    workdir = folder("d")
    jobs = [a_job("fine", workdir), a_job("gone", workdir), a_job("damaged", workdir), a_writer("w", workdir)]
    backend = ScriptedBackend(otherwise=lambda one: done(f"answer of {one.job.id}"))
    bare_shop.work(jobs, backend=backend)
    house = bare_shop.house
    for name in ("gone", "w"):
        output = bare_shop.job(name).output
        assert output is not None
        house.artifacts.delete(output)
    damaged = bare_shop.job("damaged").output
    assert damaged is not None
    path = house.state.artifacts / damaged[:2] / damaged
    path.write_bytes(b"x" * path.stat().st_size)
    end = bare_shop.work(jobs, backend=backend)
    assert [backend.times(job.id) for job in jobs] == [1, 2, 2, 1]
    assert end.counts == {JobState.SUCCEEDED: 3, JobState.INTERRUPTED: 1}
    assert "by name" in (bare_shop.job("w").reason or "")


@pytest.mark.parametrize(
    ("kind", "times"), [(FailureClass.CRASH, 3), (FailureClass.OTHER, 3), (FailureClass.BAD_REQUEST, 1)]
)
def test_a_reader_is_retried_where_that_may_help(
    bare_shop: Shop, folder: Callable[[str], Path], kind: FailureClass, times: int
) -> None:
    backend = ScriptedBackend(otherwise=failing(kind))
    end = bare_shop.work([a_job("one", folder("d"))], backend=backend, retries=2)
    assert (backend.times("one"), end.counts) == (times, {JobState.FAILED: 1})
    assert (bare_shop.job("one").failure_class, bare_shop.job("one").reason) == (kind, f"said {kind.value}")


def test_what_a_cut_thread_has_done_is_gone_on_with_and_what_failed_by_itself_begins_anew(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    seen: dict[str, list[str | None]] = {"cut": [], "failed": []}
    crash = failing(FailureClass.CRASH, times=1)
    other = failing(FailureClass.OTHER, times=1)

    def act(assignment: Assignment) -> AttemptOutcome:
        seen[assignment.job.id].append(assignment.thread_id)
        outcome = (crash if assignment.job.id == "cut" else other)(assignment)
        assert isinstance(outcome, AttemptOutcome)
        return outcome

    workdir = folder("d")
    bare_shop.work([a_job("cut", workdir), a_job("failed", workdir)], backend=ScriptedBackend(otherwise=act))
    assert seen == {"cut": [None, "thread-1"], "failed": [None, None]}


# -- writers -------------------------------------------------------------------------------------------


def test_a_writer_is_never_run_again_by_itself_in_this_or_a_later_invocation(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    jobs = [a_writer("w", folder("d"))]
    backend = ScriptedBackend(otherwise=failing(FailureClass.CRASH))
    for _ in range(3):
        end = bare_shop.work(jobs, backend=backend, retries=5)
        assert end.counts == {JobState.FAILED: 1}
    assert backend.times("w") == 1


def test_a_safe_writer_is_retried_like_a_reader(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    backend = ScriptedBackend(otherwise=failing(FailureClass.CRASH, times=1))
    assert bare_shop.work([a_writer("w", folder("d"), safe_retry=True)], backend=backend).succeeded
    assert backend.times("w") == 2


def test_an_attempt_that_gave_out_no_work_was_none(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    backend = ScriptedBackend(otherwise=failing(FailureClass.CRASH, times=1, began=False))
    assert bare_shop.work([a_writer("w", folder("d"))], backend=backend).succeeded
    assert [attempt.state for attempt in bare_shop.attempts("w")] == ["unstarted", "succeeded"]


def test_a_writer_that_is_named_runs_once_more(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    jobs = [a_writer("w", folder("d")), a_writer("x", folder("e"))]
    backend = ScriptedBackend(otherwise=failing(FailureClass.OTHER))
    bare_shop.work(jobs, backend=backend)
    assert ask_again(bare_shop.house, bare_shop.pool_id) == []
    assert ask_again(bare_shop.house, bare_shop.pool_id, ["w"]) == ["w"]
    bare_shop.work(jobs, backend=backend)
    bare_shop.work(jobs, backend=backend)
    assert (backend.times("w"), backend.times("x")) == (2, 1)


def test_writers_run_one_at_a_time_while_readers_go_on(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    workdirs = [folder("d"), folder("e")]
    jobs = [a_writer(f"w{number}", workdirs[number % 2]) for number in range(6)]
    jobs += [a_job(f"r{number}", workdirs[0]) for number in range(6)]

    async def act(assignment: Assignment) -> AttemptOutcome:
        await anyio.sleep(0.01)
        return done()

    backend = ScriptedBackend(otherwise=act)
    assert bare_shop.work(jobs, backend=backend).succeeded
    writers = [{name for name in together if name.startswith("w")} for together in backend.together]
    assert max(map(len, writers)) == 1
    assert any(len(together) > 1 for together in backend.together)


def test_writers_of_one_directory_run_together_only_with_scopes_that_the_sandbox_keeps_apart(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    workdir = folder("d")
    for name in ("a", "b"):
        (workdir / name).mkdir()
    jobs = [
        a_writer("in-a", workdir, ownership_scope="a"),
        a_writer("in-b", workdir, ownership_scope="b"),
        a_writer("file-one", workdir, ownership_scope="one.txt"),
        a_writer("file-two", workdir, ownership_scope="two.txt"),
    ]

    async def act(assignment: Assignment) -> AttemptOutcome:
        await anyio.sleep(0.05)
        return done()

    backend = ScriptedBackend(otherwise=act)
    fields = {"write_concurrency": 4, "allow_disjoint_parallel_writers": True}
    assert bare_shop.work(jobs, backend=backend, **fields).succeeded
    assert {"in-a", "in-b"} in backend.together
    # Both would get the whole directory, with each other's file read-only only once it is there.
    assert not any({"file-one", "file-two"} <= together for together in backend.together)


def test_two_pools_do_not_write_in_one_directory_at_the_same_time(
    bare_shop: Shop, folder: Callable[[str], Path], test_root: Path
) -> None:
    workdir = folder("d")
    running: list[str] = []
    seen: list[list[str]] = []

    async def act(assignment: Assignment) -> AttemptOutcome:
        running.append(assignment.job.id)
        seen.append(list(running))
        await anyio.sleep(0.05)
        running.remove(assignment.job.id)
        return done()

    def two() -> None:
        with House.open(bare_shop.house.env) as house:
            other = Shop(house, test_root / "other")
            jobs = [a_writer(f"other-{number}", workdir) for number in range(3)]
            ends.append(other.work(jobs, backend=ScriptedBackend(otherwise=act)).succeeded)

    ends: list[bool] = []

    async def beside(stop: Stop) -> None:
        await anyio.to_thread.run_sync(two)

    async def first(assignment: Assignment) -> AttemptOutcome:
        outcome = await act(assignment)
        while assignment.job.id == "mine-2" and not ends:
            await anyio.sleep(0.01)
        return outcome

    jobs = [a_writer(f"mine-{number}", workdir) for number in range(2)] + [a_job("mine-2", workdir)]
    assert bare_shop.work(jobs, backend=ScriptedBackend(otherwise=first), beside=beside).succeeded
    assert ends == [True]
    together = [[name for name in names if name != "mine-2"] for names in seen]
    assert max(map(len, together)) == 1


def test_a_writer_whose_directory_is_gone_fails_and_the_others_go_on(
    bare_shop: Shop, folder: Callable[[str], Path], test_root: Path
) -> None:
    jobs = [a_writer("lost", test_root / "gone"), a_writer("fine", folder("d"))]
    backend = ScriptedBackend()
    end = bare_shop.work(jobs, backend=backend)
    assert end.counts == {JobState.FAILED: 1, JobState.SUCCEEDED: 1}
    assert "cannot lock the directory" in (bare_shop.job("lost").reason or "")
    assert backend.times("lost") == 0
    # It has not begun, so it needs no permission once the directory is there.
    (test_root / "gone").mkdir()
    assert bare_shop.work(jobs, backend=backend).succeeded


# -- predecessors --------------------------------------------------------------------------------------


def test_a_job_starts_after_its_predecessors_and_is_skipped_when_one_fails(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    workdir = folder("d")
    jobs = [
        a_job("last", workdir, depends_on=("good", "bad")),
        a_job("after", workdir, depends_on=("good",)),
        a_job("good", workdir),
        a_job("bad", workdir),
        a_job("very-last", workdir, depends_on=("last",)),
    ]
    acts = {"bad": failing(FailureClass.BAD_REQUEST, times=1)}
    backend = ScriptedBackend(acts)
    end = bare_shop.work(jobs, backend=backend)
    order = [name for name, _ in backend.began]
    assert order.index("good") < order.index("after")
    assert end.counts == {JobState.SUCCEEDED: 2, JobState.FAILED: 1, JobState.SKIPPED: 2}
    assert bare_shop.job("last").reason == "bad, which it depends on, did not succeed"
    assert bare_shop.job("very-last").reason == "last, which it depends on, did not succeed"
    assert bare_shop.work(jobs, backend=backend).succeeded
    assert [backend.times(job.id) for job in jobs] == [1, 1, 1, 2, 1]


# -- limits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "note"), [(FailureClass.AUTH, "codex login"), (FailureClass.USAGE_LIMIT, "usage limit")]
)
def test_what_no_other_job_would_escape_stops_the_pool_and_loses_no_reader(
    bare_shop: Shop, folder: Callable[[str], Path], kind: FailureClass, note: str
) -> None:
    jobs = [a_job(f"j{number}", folder(f"d{number}")) for number in range(10)]
    backend = ScriptedBackend(otherwise=failing(kind, after=3600.0), warms_up=True)
    end = bare_shop.work(jobs, backend=backend)
    assert (end.state, end.counts) == (PoolState.STOPPED, {JobState.QUEUED: 10})
    assert len(backend.began) == 1
    assert end.note is not None and note in end.note
    assert (end.back_at is not None) == (kind is FailureClass.USAGE_LIMIT)
    assert pool_status(bare_shop.house, bare_shop.pool_id).back_at == end.back_at
    assert bare_shop.work(jobs, backend=ScriptedBackend()).succeeded


def test_a_limit_pauses_everybody_and_counts_as_no_retry(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    jobs = [a_job(f"j{number}", folder(f"d{number}")) for number in range(6)]
    limited = failing(FailureClass.RATE_LIMIT, times=3, after=0.1)
    backend = ScriptedBackend({"j0": limited})
    assert bare_shop.work(jobs, backend=backend, retries=0, concurrency=2).succeeded
    assert backend.times("j0") == 4
    assert bare_shop.kinds().count("pool.paused") == bare_shop.kinds().count("pool.resumed") == 3


def test_the_breaker_stops_a_pool_whose_jobs_all_fail_alike(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    jobs = [a_job(f"j{number}", folder(f"d{number}")) for number in range(30)]
    backend = ScriptedBackend(otherwise=failing(FailureClass.UNKNOWN_MODEL))
    end = bare_shop.work(jobs, backend=backend, concurrency=1, breaker_failures=5)
    assert end.state is PoolState.STOPPED
    assert end.counts == {JobState.FAILED: 5, JobState.QUEUED: 25}
    assert end.note is not None and "5 attempts in a row ended with unknown_model" in end.note


def test_the_token_budget_counts_over_invocations(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    jobs = [a_job(f"j{number}", folder(f"d{number}")) for number in range(5)]
    usage = Usage(input_tokens=90, output_tokens=10, total_tokens=100)
    backend = ScriptedBackend(otherwise=lambda one: done(usage=usage))
    end = bare_shop.work(jobs, backend=backend, concurrency=1, token_budget=200)
    assert (end.state, end.counts) == (PoolState.STOPPED, {JobState.SUCCEEDED: 2, JobState.QUEUED: 3})
    end = bare_shop.work(jobs, backend=backend, concurrency=1, token_budget=300)
    assert end.counts == {JobState.SUCCEEDED: 3, JobState.QUEUED: 2}
    assert pool_status(bare_shop.house, bare_shop.pool_id).tokens == 300


def test_the_time_of_the_whole_pool_ends_what_runs_and_keeps_it(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    jobs = [a_job("reader", folder("d")), a_job("waiting", folder("e"))]
    backend = ScriptedBackend({"reader": until_halted()})
    end = bare_shop.work(jobs, backend=backend, concurrency=1, total_seconds=0.2)
    assert (end.state, end.counts) == (PoolState.STOPPED, {JobState.QUEUED: 2})
    assert end.note is not None and "time is used up" in end.note


# -- stopping ------------------------------------------------------------------------------------------


def test_stopping_ends_readers_at_once_lets_a_writer_finish_and_both_go_on_later(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    threads: list[str | None] = []

    async def writer(assignment: Assignment) -> AttemptOutcome:
        await reading.wait()
        stop.ask(StopReason.INTERRUPTED, "told to stop (SIGTERM)")
        while "reader" in backend.running:
            await anyio.sleep(0.01)
        return done("written")

    def again(assignment: Assignment) -> AttemptOutcome:
        threads.append(assignment.thread_id)
        return done()

    reading, stop = anyio.Event(), Stop()
    jobs = [a_job("reader", folder("d")), a_writer("writer", folder("e")), a_job("later", folder("f"))]
    backend = ScriptedBackend({"reader": until_halted(reading), "writer": writer})
    end = bare_shop.work(jobs, backend=backend, stop=stop, concurrency=2)
    assert (end.state, end.note) == (PoolState.INTERRUPTED, "told to stop (SIGTERM)")
    assert end.counts == {JobState.SUCCEEDED: 1, JobState.QUEUED: 2}
    assert bare_shop.state("writer") is JobState.SUCCEEDED
    assert bare_shop.work(jobs, backend=ScriptedBackend({"reader": again})).succeeded
    assert threads == ["thread-1"]


def test_a_writer_that_does_not_finish_in_time_is_interrupted_and_waits_to_be_named(
    bare_shop: Shop, folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("baton.pool.run.WRITER_GRACE_SECONDS", 0.05)
    stop = Stop()

    async def writer(assignment: Assignment) -> AttemptOutcome:
        stop.ask(StopReason.INTERRUPTED, "told to")
        await assignment.halt.wait()
        return AttemptOutcome(interrupted=True)

    jobs = [a_writer("w", folder("d"))]
    end = bare_shop.work(jobs, backend=ScriptedBackend(otherwise=writer), stop=stop)
    assert end.counts == {JobState.INTERRUPTED: 1}
    backend = ScriptedBackend()
    assert bare_shop.work(jobs, backend=backend).counts == {JobState.INTERRUPTED: 1}
    assert backend.began == []
    ask_again(bare_shop.house, bare_shop.pool_id, ["w"])
    assert bare_shop.work(jobs, backend=backend).succeeded


def test_another_process_can_cancel_it(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    working = anyio.Event()

    async def beside(stop: Stop) -> None:
        await working.wait()
        with House.open(bare_shop.house.env) as house:
            with pytest.raises(WrongState, match="is running"):
                ask_again(house, bare_shop.pool_id, ["reader"])
            assert cancel(house, bare_shop.pool_id) == "asked to stop"

    backend = ScriptedBackend(otherwise=until_halted(working))
    end = bare_shop.work([a_job("reader", folder("d"))], backend=backend, beside=beside)
    assert end.state is PoolState.CANCELLED
    assert cancel(bare_shop.house, bare_shop.pool_id) == "already cancelled"


# -- identity ------------------------------------------------------------------------------------------


def test_a_moved_file_or_run_directory_goes_on_with_its_pool(
    bare_shop: Shop, folder: Callable[[str], Path], test_root: Path
) -> None:
    jobs = [a_job("one", folder("d")), a_job("two", folder("e"))]
    bare_shop.work(jobs, backend=ScriptedBackend())
    first = bare_shop.pool_id
    backend = ScriptedBackend()
    bare_shop.folder.rename(test_root / "moved")
    moved = Shop(bare_shop.house, test_root / "moved")
    assert moved.work(jobs, backend=backend).succeeded
    assert (moved.pool_id, backend.began) == (first, [])
    # The file alone, with nothing of its run directory.
    moved.jobs_file.unlink()
    elsewhere = Shop(bare_shop.house, test_root / "elsewhere")
    assert elsewhere.work(jobs, backend=backend).succeeded
    assert (elsewhere.pool_id, backend.began) == (first, [])


def test_a_copy_of_a_file_that_is_still_there_is_a_pool_of_its_own(
    bare_shop: Shop, folder: Callable[[str], Path], test_root: Path
) -> None:
    jobs = [a_job("one", folder("d"))]
    bare_shop.work(jobs, backend=ScriptedBackend())
    copy, backend = Shop(bare_shop.house, test_root / "copy"), ScriptedBackend()
    assert copy.work(jobs, backend=backend).succeeded
    assert copy.pool_id != bare_shop.pool_id
    assert backend.times("one") == 1


def test_another_file_does_not_drop_the_jobs_of_a_run_directory(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    bare_shop.work([a_job("one", folder("d"))], backend=ScriptedBackend())
    settings = some_settings(bare_shop.folder)
    other = bare_shop.folder / "other.jsonl"
    other.touch()
    with pytest.raises(InvalidInput, match="--run-dir"):
        open_pool(bare_shop.house, other, settings.run_dir, [a_job("two", folder("e"))], settings)


def test_a_run_directory_is_one_process_at_a_time(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    jobs, settings = [a_job("one", folder("d"))], some_settings(bare_shop.folder)
    with bare_shop.open(jobs, settings), pytest.raises(Busy):
        bare_shop.open(jobs, settings)
    bare_shop.open(jobs, settings).close()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pool": 3}'])
def test_an_unreadable_identity_is_never_taken_for_none(
    bare_shop: Shop, folder: Callable[[str], Path], content: str
) -> None:
    jobs, settings = [a_job("one", folder("d"))], some_settings(bare_shop.folder)
    settings.run_dir.mkdir(parents=True)
    (settings.run_dir / IDENTITY_FILE).write_text(content)
    with pytest.raises(InvalidInput, match="does not name a pool"):
        bare_shop.open(jobs, settings)


def test_a_run_directory_of_another_state_folder_is_refused(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    jobs, settings = [a_job("one", folder("d"))], some_settings(bare_shop.folder)
    settings.run_dir.mkdir(parents=True)
    (settings.run_dir / IDENTITY_FILE).write_text('{"pool": "paaaaaaaa"}')
    with pytest.raises(InvalidInput, match="BATON_STATE"):
        bare_shop.open(jobs, settings)


def test_a_pool_is_found_by_id_file_and_run_directory(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    bare_shop.work([a_job("one", folder("d"))], backend=ScriptedBackend())
    house, run_dir = bare_shop.house, some_settings(bare_shop.folder).run_dir
    for text in (bare_shop.pool_id, str(bare_shop.jobs_file), str(run_dir), None):
        assert find_pool(house, text).pool_id == bare_shop.pool_id
    assert find_pool(house, None, run_dir).pool_id == bare_shop.pool_id


# -- what a dead process leaves ------------------------------------------------------------------------


def test_open_attempts_of_a_dead_process_are_settled_by_the_next_start(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    workdir = folder("d")
    jobs = [
        a_job("reader", workdir),
        a_writer("writer", workdir),
        a_writer("safe", workdir, safe_retry=True),
        a_job("fresh", workdir),
    ]
    ledger = bare_shop.house.ledger
    with bare_shop.open(jobs, some_settings(bare_shop.folder)) as opened:
        bare_shop.pool_id = opened.pool_id
        ledger.update_pool(opened.pool_id, state=PoolState.RUNNING)
        for job in jobs[:3]:
            record = PoolAttemptRecord(
                pool_id=opened.pool_id, job_id=job.id, attempt=1, backend="scripted", writes_in=str(workdir)
            )
            ledger.begin_pool_attempt(record)
            ledger.name_pool_thread(opened.pool_id, job.id, 1, f"thread of {job.id}")
    status = pool_status(bare_shop.house, bare_shop.pool_id)
    assert (status.alive, status.record.state, status.running) == (False, PoolState.INTERRUPTED, 0)
    assert recover_pools(bare_shop.house) == [bare_shop.pool_id]
    assert recover_pools(bare_shop.house) == []
    threads: dict[str, str | None] = {}

    def act(assignment: Assignment) -> AttemptOutcome:
        threads[assignment.job.id] = assignment.thread_id
        return done()

    backend = ScriptedBackend(otherwise=act)
    end = bare_shop.work(jobs, backend=backend)
    assert end.counts == {JobState.SUCCEEDED: 3, JobState.INTERRUPTED: 1}
    assert backend.times("writer") == 0
    assert threads == {"reader": "thread of reader", "safe": "thread of safe", "fresh": None}


def test_what_cannot_be_recorded_stops_the_pool_and_is_said(
    bare_shop: Shop, folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(data: bytes) -> str:
        raise StateUnavailable("the disk is full")

    monkeypatch.setattr(bare_shop.house.artifacts, "put_bytes", full)
    jobs = [a_job(f"j{number}", folder(f"d{number}")) for number in range(10)]
    end = bare_shop.work(jobs, backend=ScriptedBackend(), concurrency=2)
    assert (end.state, end.note) == (PoolState.STOPPED, "the disk is full")
    assert bare_shop.house.ledger.open_pool_attempts(bare_shop.pool_id) == []
    assert end.counts == {JobState.QUEUED: 10}
    monkeypatch.undo()
    assert bare_shop.work(jobs, backend=ScriptedBackend()).succeeded


def test_status_counts_and_estimates(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    jobs = [a_job(f"j{number}", folder(f"d{number}")) for number in range(6)]
    seen = []

    async def act(assignment: Assignment) -> AttemptOutcome:
        await anyio.sleep(0.02)
        seen.append(pool_status(bare_shop.house, bare_shop.pool_id))
        return done()

    ended: list[PoolStatus] = []

    class Told(list[PoolEvent]):
        def append(self, event: PoolEvent) -> None:
            if event.kind == "job.ended":
                ended.append(pool_status(bare_shop.house, bare_shop.pool_id))

    bare_shop.told = Told()
    bare_shop.work(jobs, backend=ScriptedBackend(otherwise=act), concurrency=1)
    # With the last one nothing is left, though the pool has not come to rest yet.
    assert [(one.finished, one.alive, one.eta_seconds is None) for one in ended[-2:]] == [
        (5, True, False),
        (6, True, True),
    ]
    last = seen[-1]
    assert (last.alive, last.total, last.running, last.limit) == (True, 6, 1, 1)
    assert last.finished == 5
    assert last.rate_per_minute and last.eta_seconds
    status = pool_status(bare_shop.house, bare_shop.pool_id)
    assert (status.alive, status.finished, status.eta_seconds) == (False, 6, None)


def test_a_pause_that_is_over_is_shown_no_more(bare_shop: Shop, folder: Callable[[str], Path]) -> None:
    seen = []

    def act(assignment: Assignment) -> AttemptOutcome:
        ledger = bare_shop.house.ledger
        for until in (time.time() + 60, time.time() - 1):
            ledger.update_pool(bare_shop.pool_id, live={"limit": 1, "pausedUntil": until, "why": "x"})
            status = pool_status(bare_shop.house, bare_shop.pool_id)
            seen.append((status.pause_until is not None, status.pause_why))
        return done()

    bare_shop.work([a_job("one", folder("d"))], backend=ScriptedBackend(otherwise=act))
    assert seen == [(True, "x"), (False, None)]


def test_events_of_an_attempt_are_named_only_where_there_are_any(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    bare_shop.work([a_job("one", folder("d"))], backend=ScriptedBackend())
    house, pool_id = bare_shop.house, bare_shop.pool_id
    log = bare_shop.attempts("one")[0].log
    assert log is not None and not (house.state.root / log).exists()
    assert job_json(house, pool_id, "one")["attempts"][0]["log"] is None
    assert not any("events:" in line for line in job_lines(house, pool_id, "one"))
    (house.state.root / log).parent.mkdir(parents=True)
    (house.state.root / log).touch()
    assert job_json(house, pool_id, "one")["attempts"][0]["log"] == str(house.state.root / log)
    assert any(line.endswith(log) for line in job_lines(house, pool_id, "one"))
