"""Which job is next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from baton.pool.jobs import Job, JobRoute
from baton.pool.queue import Entry, JobQueue
from pool.shop import a_job, a_writer

A, B = Path("/a"), Path("/b")


def queue_of(*jobs: Job) -> JobQueue:
    queue = JobQueue()
    for position, job in enumerate(jobs):
        queue.add(Entry(job, position))
    return queue


def names(queue: JobQueue, may_write: object = None, *, writers: bool = True) -> list[str]:
    """All that may start, one after another."""
    found = []
    while (entry := queue.pop(may_write or (lambda entry: True), writers=writers)) is not None:  # type: ignore[arg-type]
        found.append(entry.job.id)
    return found


def test_jobs_come_in_the_order_of_the_file() -> None:
    queue = queue_of(a_job("r1", A), a_writer("w1", A), a_job("r2", B), a_writer("w2", B))
    assert len(queue) == 4
    assert names(queue) == ["r1", "w1", "r2", "w2"]
    assert len(queue) == 0


def test_readers_pass_writers_that_may_not_start() -> None:
    queue = queue_of(a_writer("w1", A), a_job("r1", A), a_writer("w2", B), a_job("r2", B))
    assert names(queue, writers=False) == ["r1", "r2"]
    assert names(queue) == ["w1", "w2"]


def test_a_directory_that_is_taken_is_passed_over_until_it_is_free() -> None:
    queue = queue_of(a_writer("w1", A), a_writer("w2", A), a_writer("w3", B))
    assert names(queue, lambda entry: entry.job.workdir != A) == ["w3"]
    assert queue.has_blocked
    assert names(queue) == []
    queue.unblock(A)
    assert names(queue) == ["w1", "w2"]


def test_a_taken_directory_is_asked_for_once_however_many_writers_wait_for_it() -> None:
    asked = []
    queue = queue_of(*(a_writer(f"w{number}", A) for number in range(100)), a_writer("last", B))

    def may_write(entry: Entry) -> bool:
        asked.append(entry.job.id)
        return entry.job.workdir == B

    assert names(queue, may_write) == ["last"]
    assert asked == ["w0", "last"]


def test_an_isolated_writer_takes_no_directory() -> None:
    queue = queue_of(a_writer("w", A), a_writer("i", A, isolate=True))
    assert names(queue, writers=False) == ["i"]


def test_a_job_waits_for_all_its_predecessors() -> None:
    queue = queue_of(a_job("one", A), a_job("two", A))
    queue.add_after(Entry(a_job("three", A), 2), ["one", "two"])
    assert names(queue) == ["one", "two"]
    queue.succeeded("one")
    assert names(queue) == []
    queue.succeeded("two")
    assert names(queue) == ["three"]


def test_whatever_waits_for_a_lost_job_directly_or_not_is_lost_with_what_it_waited_for() -> None:
    queue = JobQueue()
    for position, (name, before) in enumerate([("b", ["a"]), ("c", ["b"]), ("d", ["a", "c"]), ("e", ["x"])]):
        queue.add_after(Entry(a_job(name, A), position), before)
    found = queue.lost("a")
    assert sorted((entry.job.id, why) for entry, why in found) == [("b", "a"), ("c", "b"), ("d", "a")]
    assert queue.lost("a") == []


def test_a_delayed_job_comes_at_its_moment() -> None:
    queue = JobQueue()
    queue.add_at(Entry(a_job("later", A), 0), 10.0)
    queue.add_at(Entry(a_job("sooner", A), 1), 5.0)
    assert (len(queue), queue.next_moment()) == (2, 5.0)
    queue.release(4.9)
    assert names(queue) == []
    queue.release(5.0)
    assert names(queue) == ["sooner"]
    queue.release(11.0)
    assert names(queue) == ["later"]


def of_model(job: Job, model: str) -> Job:
    return replace(job, route=JobRoute(model, "low"))


def test_jobs_of_a_held_model_are_passed_over_until_its_moment() -> None:
    jobs = [
        a_job("r1", A),
        a_writer("w1", A),
        of_model(a_job("r2", A), "m"),
        of_model(a_writer("w2", A), "m"),
    ]
    queue = queue_of(*jobs)
    queue.hold("gpt-5.6-luna", 10.0, "limited")
    assert queue.held_back() is None
    assert names(queue) == ["r2", "w2"]
    held = queue.held_back()
    assert held is not None and (held.model, held.until, held.why) == ("gpt-5.6-luna", 10.0, "limited")
    assert (len(queue), queue.next_moment()) == (2, 10.0)
    queue.release(9.9)
    assert names(queue) == []
    queue.release(10.0)
    assert (queue.held_back(), queue.next_moment()) == (None, None)
    assert names(queue) == ["r1", "w1"]


def test_a_writer_of_another_model_waits_for_the_same_directory() -> None:
    queue = queue_of(a_writer("w1", A), of_model(a_writer("w2", A), "m"), of_model(a_writer("w3", B), "m"))
    assert names(queue, lambda entry: entry.job.workdir == B) == ["w3"]
    queue.unblock(A)
    assert names(queue) == ["w1", "w2"]
