"""How one invocation of a pool ended, on the record and for whoever waits for it."""

from __future__ import annotations

import contextlib

from baton.contract.errors import BatonError
from baton.engine.stop import StopReason
from baton.ledger.base import now as wall_clock
from baton.ledger.pool_records import UNSUCCESSFUL, JobState, PoolState
from baton.pool.events import FAILED_NAMED, PoolEnd, PoolEvent
from baton.pool.invocation import Invocation
from baton.pool.recover import settle_open_attempts


def end(inv: Invocation) -> PoolEnd:
    """Bring the pool to rest, with the reason. Nothing of it is at work any more."""
    if inv.fault is not None:
        # Where the fault was that of a moment; else the next start does it.
        with contextlib.suppress(BatonError):
            settle_open_attempts(inv.house, inv.pool_id, inv.fault.message)
    counts = inv.ledger.pool_counts(inv.pool_id)
    state, note = _state(inv, left=counts.get(JobState.QUEUED, 0))
    rest(inv, state, note)
    stopping = inv.throttle.stopping
    inv.tell(PoolEvent("pool.ended", data={"state": state.value, "note": note}))
    unsuccessful = inv.ledger.pool_jobs(inv.pool_id, states=UNSUCCESSFUL, limit=FAILED_NAMED)
    return PoolEnd(
        pool_id=inv.pool_id,
        state=state,
        counts=counts,
        note=note,
        back_at=stopping.back_at if stopping is not None and state is PoolState.STOPPED else None,
        failed=tuple((job.job_id, job.reason or job.state.value) for job in unsuccessful),
    )


def rest(inv: Invocation, state: PoolState, note: str | None) -> None:
    """Write down that the pool is at rest."""
    inv.ledger.update_pool(
        inv.pool_id,
        state=state,
        note=note,
        asked=None,
        live=inv.throttle.live() if state is PoolState.STOPPED else {},
        ended_at=wall_clock(),
    )


def _state(inv: Invocation, left: int) -> tuple[PoolState, str | None]:
    if inv.fault is not None:
        return PoolState.STOPPED, inv.fault.message
    if inv.stop.reason is StopReason.CANCELLED:
        return PoolState.CANCELLED, inv.stop.detail
    if inv.stop.asked:
        return PoolState.INTERRUPTED, inv.stop.detail
    if inv.throttle.stopping is not None and left:
        return PoolState.STOPPED, inv.throttle.stopping.why
    return PoolState.DONE, None
