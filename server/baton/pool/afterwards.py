"""What an attempt means for its job: done, tried again, or left to whoever reads of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from baton.ledger.base import now
from baton.ledger.pool_records import JobState
from baton.pool.attempt import Attempted
from baton.pool.queue import Entry
from baton.pool.recover import CUT_WRITER
from baton.pool.trouble import TREATMENTS, backoff, may_repeat

MAX_WAITS = 50
"""Tries of one job that limits may cut short before it fails."""


@dataclass(frozen=True)
class Afterwards:
    """What is written of a job after an attempt, and what follows."""

    state: JobState
    fields: dict[str, object] = field(default_factory=dict)
    """Columns of the job, the state among them."""
    again_in: float = 0.0
    """Seconds after which it may be tried again, for one that is queued."""
    retries: bool = False
    """Whether the next try counts as a retry."""
    waits: bool = False
    """Whether a limit cut this try short."""


def afterwards(entry: Entry, done: Attempted, *, retries: int, backoff_seconds: float) -> Afterwards:
    """`retries` is how often a job may be tried again in one invocation, where that may help at all.

    A writer that may have written is tried again only when it says that it may; an isolated one that goes on
    in the run it began is not run again.
    """
    job, record = entry.job, done.record
    repeat = may_repeat(writes=job.writes, safe_retry=job.safe_retry, began=done.began)
    if done.halted:
        if repeat or record.run_id is not None:
            return _queued(entry, done, goes_on=True)
        return _rests(entry, done, JobState.INTERRUPTED, reason=CUT_WRITER)
    if done.trouble is None:
        kept = {"output": record.output, "output_bytes": record.output_bytes}
        where = {"thread_id": record.thread_id, "run_id": record.run_id}
        return _rests(entry, done, JobState.SUCCEEDED, **kept, **where)
    treatment = TREATMENTS[done.trouble]
    same_run = treatment.resumes and record.run_id is not None
    if not treatment.again or not (repeat or same_run):
        return _rests(entry, done, JobState.FAILED)
    if treatment.stops:
        return _queued(entry, done, goes_on=treatment.resumes)
    if treatment.pauses and entry.waits < MAX_WAITS:
        return _queued(entry, done, goes_on=treatment.resumes, waits=True)
    if not treatment.pauses and entry.tries < retries:
        wait = backoff(backoff_seconds, entry.tries + 1)
        return _queued(entry, done, goes_on=treatment.resumes, again_in=wait, retries=True)
    return _rests(entry, done, JobState.FAILED)


def _rests(entry: Entry, done: Attempted, state: JobState, **fields: object) -> Afterwards:
    common = {**_common(entry, done), "state": state, "thread_id": None, "run_id": None}
    return Afterwards(state, {**common, "ended_at": done.record.ended_at, **fields})


def _queued(
    entry: Entry,
    done: Attempted,
    *,
    goes_on: bool,
    again_in: float = 0.0,
    retries: bool = False,
    waits: bool = False,
) -> Afterwards:
    fields = {
        **_common(entry, done),
        "state": JobState.QUEUED,
        "thread_id": done.record.thread_id if goes_on else None,
        "run_id": done.record.run_id if goes_on else None,
        "ended_at": None,
    }
    return Afterwards(JobState.QUEUED, fields, again_in, retries, waits)


def _common(entry: Entry, done: Attempted) -> dict[str, object]:
    return {
        "touched": entry.touched,
        "named": entry.named,
        "reason": done.record.message,
        "failure_class": done.record.failure_class,
    }


def skipped(predecessor: str) -> dict[str, object]:
    """The fields of a job that will never start, because one that it depends on has not succeeded."""
    return {
        "state": JobState.SKIPPED,
        "reason": f"{predecessor}, which it depends on, did not succeed",
        "ended_at": now(),
    }
