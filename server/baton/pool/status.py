"""Where a pool is, told from the ledger: cheap enough to be asked every second, of ten thousand jobs."""

from __future__ import annotations

from dataclasses import dataclass

from baton.engine.house import House
from baton.ledger.base import now
from baton.ledger.pool_records import UNSUCCESSFUL, JobState, PoolRecord, PoolState
from baton.pool.events import FAILED_NAMED
from baton.pool.recover import DIED, is_alive


@dataclass(frozen=True)
class PoolStatus:
    """One look at a pool. Times are seconds since 1970 unless said otherwise."""

    record: PoolRecord
    """With the state as it really is: a pool whose process died is interrupted."""
    alive: bool
    counts: dict[JobState, int]
    total: int
    """Jobs of the file."""
    running: int
    rate_per_minute: float | None
    """Jobs that came to rest in this invocation; None before the first."""
    eta_seconds: float | None
    """What is left at that rate; None when it is not known or nothing is left."""
    tokens: int | None
    limit: int | None
    """Jobs that may run at once now; None while it does not run."""
    pause_until: float | None
    pause_why: str | None
    breaker: str | None
    """Why the breaker is open."""
    back_at: float | None
    """When the limit that stopped it is over, where that was said."""
    failed: tuple[tuple[str, str], ...]
    """The first jobs that did not succeed, each with its reason."""

    @property
    def finished(self) -> int:
        """Jobs at rest."""
        return sum(count for state, count in self.counts.items() if state.at_rest) - self.counts.get(
            JobState.DROPPED, 0
        )


def pool_status(house: House, pool_id: str) -> PoolStatus:
    """Raises `NotFound`."""
    ledger = house.ledger
    record = ledger.pool(pool_id)
    alive = is_alive(house, pool_id)
    if record.state is PoolState.RUNNING and not alive:
        # It may have come to rest between the two looks.
        record = ledger.pool(pool_id)
        if record.state is PoolState.RUNNING:
            record = record.model_copy(update={"state": PoolState.INTERRUPTED, "note": DIED, "live": {}})
    runs = record.state is PoolState.RUNNING
    counts = ledger.pool_counts(pool_id)
    total = sum(count for state, count in counts.items() if state is not JobState.DROPPED)
    rate = _rate(ledger.pool_finished_since(pool_id, record.began_at), record)
    left = counts.get(JobState.QUEUED, 0) + counts.get(JobState.RUNNING, 0)
    live = record.live
    until = _number(live.get("pausedUntil")) if runs else None
    paused = until is not None and until > now()
    unsuccessful = ledger.pool_jobs(pool_id, states=UNSUCCESSFUL, limit=FAILED_NAMED)
    return PoolStatus(
        record=record,
        alive=alive,
        counts=counts,
        total=total,
        running=counts.get(JobState.RUNNING, 0) if runs else 0,
        rate_per_minute=rate,
        eta_seconds=left / rate * 60.0 if runs and rate and left else None,
        tokens=ledger.pool_tokens(pool_id),
        limit=_whole(live.get("limit")) if runs else None,
        pause_until=until if paused else None,
        pause_why=_text(live.get("why")) if paused else None,
        breaker=_text(live.get("breaker")),
        back_at=_number(live.get("backAt")),
        failed=tuple((job.job_id, job.reason or job.state.value) for job in unsuccessful),
    )


def _rate(finished: int, record: PoolRecord) -> float | None:
    if record.began_at is None or not finished:
        return None
    seconds = (record.ended_at or now()) - record.began_at
    return finished / seconds * 60.0 if seconds > 0 else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
