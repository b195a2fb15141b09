"""What a pool tells whoever watches it, as it happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import JsonValue

from baton.ledger.pool_records import JobState, PoolState


@dataclass(frozen=True)
class PoolEvent:
    """One thing that happened. Kinds:

    `pool.began`, `pool.paused` (until, why), `pool.resumed`, `pool.limit` (limit, why), `pool.breaker` (why),
    `pool.stopping` (why, writers: how many are waited for), `pool.ended` (state); `job.started`, `job.retry`
    (why, seconds), `job.ended` (state, reason).
    """

    kind: str
    job_id: str | None = None
    attempt: int | None = None
    data: dict[str, JsonValue] = field(default_factory=dict)


Tell = Callable[[PoolEvent], None]

FAILED_NAMED = 20
"""Failed jobs that an end names; the ledger knows all."""


@dataclass(frozen=True)
class PoolEnd:
    """How one invocation of a pool ended."""

    pool_id: str
    state: PoolState
    counts: dict[JobState, int]
    note: str | None = None
    back_at: float | None = None
    """When a limit that stopped it is over, seconds since 1970, where that was said."""
    failed: tuple[tuple[str, str], ...] = ()
    """The first jobs that did not succeed, each with its reason."""

    @property
    def succeeded(self) -> bool:
        """Whether every job of the file has succeeded."""
        rest = {state for state, count in self.counts.items() if count}
        return self.state is PoolState.DONE and rest <= {JobState.SUCCEEDED, JobState.DROPPED}
