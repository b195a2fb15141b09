"""A pool in words: its state now, what just happened, and how it ended, with the command that goes on."""

from __future__ import annotations

import datetime
import shlex
import time
from collections.abc import Iterator, Mapping
from typing import Any

from baton.contract.wording import many
from baton.ledger.pool_records import UNSUCCESSFUL, JobState, PoolRecord, PoolState
from baton.pool.events import FAILED_NAMED, PoolEnd, PoolEvent
from baton.pool.settle import arguments
from baton.pool.status import PoolStatus

_ORDER = (
    JobState.SUCCEEDED,
    JobState.FAILED,
    JobState.INTERRUPTED,
    JobState.SKIPPED,
    JobState.RUNNING,
    JobState.QUEUED,
)


def counts_text(counts: Mapping[JobState, int]) -> str:
    """`40 succeeded, 2 failed, 8 queued`; states without jobs are left out."""
    return ", ".join(f"{counts[state]} {state.value}" for state in _ORDER if counts.get(state)) or "no jobs"


def total(counts: Mapping[JobState, int]) -> int:
    """Jobs of the file, without those whose rows left it."""
    return sum(count for state, count in counts.items() if state is not JobState.DROPPED)


def progress_line(status: PoolStatus) -> str:
    """Where a pool is, in one line: counts, rate, time left, tokens, limits."""
    parts = [counts_text(status.counts), *measures(status)]
    return f"{status.finished}/{status.total}  " + "; ".join(parts)


def measures(status: PoolStatus) -> Iterator[str]:
    """What is known of speed, cost and limits; nothing that is not known."""
    if status.rate_per_minute is not None:
        yield f"{status.rate_per_minute:.1f} jobs/min"
    if status.eta_seconds is not None:
        yield f"about {duration(status.eta_seconds)} left"
    if status.tokens is not None:
        yield many(status.tokens, "token")
    if status.limit is not None and status.alive:
        yield f"{status.limit} at once"
    if status.pause_until is not None:
        why = status.pause_why if status.pause_why != status.breaker else None
        yield f"paused until {clock(status.pause_until)}" + (f": {why}" if why else "")
    if status.breaker is not None:
        yield f"breaker open: {status.breaker}"
    if status.back_at is not None:
        yield f"come back at {clock(status.back_at)}"


def status_lines(status: PoolStatus) -> Iterator[str]:
    """A pool for a person who asks where it is."""
    pool = status.record
    yield f"{pool.pool_id}  {status.record.state.value}  {pool.jobs_file}"
    yield f"  {progress_line(status)}"
    if pool.note:
        yield f"  {pool.note}"
    yield from _failed_lines(status.failed, unsuccessful(status.counts))
    if not status.alive and unfinished(status.counts):
        yield f"  go on:  {resume_command(pool)}"
    if not status.alive and unsuccessful(status.counts):
        yield f"  again:  {retry_command(pool.pool_id, [name for name, _ in status.failed], status.counts)}"


def status_json(status: PoolStatus) -> dict[str, Any]:
    """The same for a program."""
    pool = status.record
    return {
        "poolId": pool.pool_id,
        "state": status.record.state.value,
        "alive": status.alive,
        "jobsFile": pool.jobs_file,
        "runDir": pool.run_dir,
        "note": pool.note,
        "total": total(status.counts),
        "counts": {state.value: status.counts.get(state, 0) for state in JobState},
        "ratePerMinute": status.rate_per_minute,
        "etaSeconds": status.eta_seconds,
        "tokens": status.tokens,
        "limit": status.limit,
        "pausedUntil": status.pause_until,
        "pausedWhy": status.pause_why,
        "breaker": status.breaker,
        "backAt": status.back_at,
        "failed": [{"id": name, "reason": reason} for name, reason in status.failed],
    }


def event_line(event: PoolEvent) -> str | None:
    """What happened, in one plain line; None for what is not worth one."""
    data = event.data
    why = f": {data['why']}" if data.get("why") else ""
    match event.kind:
        case "job.ended" if data.get("state") == JobState.SUCCEEDED.value:
            return f"ok      {event.job_id}"
        case "job.ended":
            reason = f": {data['reason']}" if data.get("reason") else ""
            return f"{data.get('state'):<7} {event.job_id}{reason}"
        case "job.retry":
            seconds = data.get("seconds")
            wait = f" in {seconds:.0f} s" if isinstance(seconds, int | float) and seconds >= 1 else ""
            return f"again   {event.job_id}{wait}{why}"
        case "pool.paused":
            until = data.get("until")
            return f"paused{f' until {clock(until)}' if isinstance(until, int | float) else ''}{why}"
        case "pool.resumed":
            return "goes on"
        case "pool.limit":
            return f"at most {data.get('limit')} at once now{why}"
        case "pool.breaker":
            return f"breaker open{why}"
        case "pool.stopping":
            count = data.get("writers")
            wait = (
                f"; {many(count, 'writer')} may end first, unless told again"
                if isinstance(count, int) and count
                else ""
            )
            return f"stopping{why}{wait}"
    return None


def summary_lines(end: PoolEnd, pool: PoolRecord, tokens: int | None) -> Iterator[str]:
    """How an invocation ended, with the jobs that did not succeed and the commands that go on."""
    spent = f"; {many(tokens, 'token')}" if tokens is not None else ""
    yield f"pool {end.pool_id} {end.state.value}: {counts_text(end.counts)} of {total(end.counts)}{spent}"
    if end.note:
        yield f"  {end.note}"
    yield from _failed_lines(end.failed, unsuccessful(end.counts))
    if end.back_at is not None:
        yield f"  come back at {clock(end.back_at)}"
    if unfinished(end.counts) and end.state is not PoolState.CANCELLED:
        yield f"  go on:  {resume_command(pool)}"
    if unsuccessful(end.counts):
        yield f"  again:  {retry_command(end.pool_id, [name for name, _ in end.failed], end.counts)}"


def summary_json(end: PoolEnd, pool: PoolRecord, tokens: int | None) -> dict[str, Any]:
    """The same for a program."""
    again = unsuccessful(end.counts)
    return {
        "poolId": end.pool_id,
        "state": end.state.value,
        "succeeded": end.succeeded,
        "jobsFile": pool.jobs_file,
        "runDir": pool.run_dir,
        "note": end.note,
        "total": total(end.counts),
        "counts": {state.value: end.counts.get(state, 0) for state in JobState},
        "tokens": tokens,
        "backAt": end.back_at,
        "failed": [{"id": name, "reason": reason} for name, reason in end.failed],
        "resume": resume_command(pool) if unfinished(end.counts) else None,
        "retry": retry_command(end.pool_id, [name for name, _ in end.failed], end.counts) if again else None,
    }


def retry_command(pool_id: str, failed: list[str], counts: Mapping[JobState, int]) -> str:
    """The exact command that runs what did not succeed again.

    Every such job is named where they fit into it. Where they do not, none is, and then no writer that may
    have written runs again: that takes its name.
    """
    named = failed if len(failed) == unsuccessful(counts) else []
    return shlex.join(["baton", "pool", "retry", pool_id, *named])


def resume_command(pool: PoolRecord) -> str:
    """The exact command that works off what is left, in any folder."""
    flags = pool.settings.get("flags")
    said = arguments(flags) if isinstance(flags, dict) else ["--run-dir", pool.run_dir]
    return shlex.join(["baton", "pool", "run", pool.jobs_file, *said])


def unfinished(counts: Mapping[JobState, int]) -> int:
    return counts.get(JobState.QUEUED, 0) + counts.get(JobState.RUNNING, 0)


def unsuccessful(counts: Mapping[JobState, int]) -> int:
    return sum(counts.get(state, 0) for state in UNSUCCESSFUL)


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours < 48 else f"{round(hours / 24)} days"


def clock(moment: float) -> str:
    """The time of day, with the date when it is another day."""
    when = datetime.datetime.fromtimestamp(moment)
    today = datetime.date.fromtimestamp(time.time())
    return when.strftime("%H:%M:%S" if when.date() == today else "%Y-%m-%d %H:%M")


def _failed_lines(failed: tuple[tuple[str, str], ...], count: int) -> Iterator[str]:
    for name, reason in failed[:FAILED_NAMED]:
        yield f"  {name}: {' '.join(reason.split())[:300]}"
    if count > len(failed[:FAILED_NAMED]) and failed:
        yield f"  and {count - len(failed[:FAILED_NAMED])} more"
