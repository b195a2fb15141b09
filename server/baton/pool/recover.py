"""What the next start does about pools whose process died: end what it left, then say where every job is."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping

from baton.contract.errors import BatonError
from baton.engine.house import House
from baton.engine.recover import end_left_processes
from baton.ledger.base import now
from baton.ledger.locks import FileLock, is_held
from baton.ledger.pool_records import JobState, PoolAttemptRecord, PoolJobRecord, PoolState
from baton.pool.made import remove_left
from baton.process.tree import ProcessId, boot_id

log = logging.getLogger(__name__)

DIED = "its process died"

CUT_WRITER = "it may have written before it was cut, and is not run again by itself"


def is_alive(house: House, pool_id: str) -> bool:
    """Whether a process works the pool off."""
    return is_held(house.state.pool_lock(pool_id))


def recover_pools(house: House) -> list[str]:
    """Recover every pool that a process has left without settling it; their ids. Cheap when there is none."""
    done = []
    for pool_id in house.ledger.unsettled_pools():
        lock = FileLock(house.state.pool_lock(pool_id))
        if not lock.try_acquire():
            continue
        try:
            recover_pool(house, pool_id)
            done.append(pool_id)
        except BatonError as error:
            log.warning("pool %s cannot be recovered now: %s", pool_id, error.message)
        finally:
            lock.release()
    return done


def recover_pool(house: House, pool_id: str) -> None:
    """Bring a pool that a dead process left to rest. The caller holds its lock. Safe to repeat.

    Its processes are ended before anything is marked, so that no job is started again beside one that lives.
    """
    end_pool_processes(house, pool_id)
    scratch = house.state.scratch / pool_id
    remove_left(scratch)
    shutil.rmtree(scratch, ignore_errors=True)
    ledger = house.ledger
    with ledger.transaction():
        settle_open_attempts(house, pool_id, DIED)
        if ledger.pool(pool_id).state is PoolState.RUNNING:
            ledger.update_pool(
                pool_id, state=PoolState.INTERRUPTED, note=DIED, asked=None, live={}, ended_at=now()
            )


def settle_open_attempts(house: House, pool_id: str, why: str) -> None:
    """Record attempts whose end nobody recorded as interrupted. Nothing of them may be at work any more."""
    ledger = house.ledger
    with ledger.transaction():
        for attempt in ledger.open_pool_attempts(pool_id):
            job = ledger.pool_job(pool_id, attempt.job_id)
            ended = attempt.model_copy(update={"state": "interrupted", "message": why, "ended_at": now()})
            ledger.end_pool_attempt(ended, after_cut(job, attempt))


def end_pool_processes(house: House, pool_id: str) -> None:
    """End what a dead process of the pool left running."""
    boot = boot_id()
    recorded = house.ledger.pool_processes(pool_id)
    end_left_processes(
        pool_id,
        [ProcessId(process.pid, process.start_time) for process in recorded if process.boot_id == boot],
    )
    for process in recorded:
        house.ledger.end_pool_process(process.process_id)


def after_cut(job: PoolJobRecord, attempt: PoolAttemptRecord) -> Mapping[str, object]:
    """What a job is after an attempt that was cut: to go on, or, for a writer, to be asked for by name."""
    goes_on = not job.writes or job.safe_retry or attempt.run_id is not None
    return {
        "state": JobState.QUEUED if goes_on else JobState.INTERRUPTED,
        "reason": None if goes_on else CUT_WRITER,
        "thread_id": attempt.thread_id,
        "run_id": attempt.run_id,
        "ended_at": None if goes_on else now(),
    }
