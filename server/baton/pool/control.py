"""What another process may ask of a pool: which one is meant, to run jobs again, to stop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from baton.contract.errors import InvalidInput, NotFound, WrongState
from baton.contract.nearest import did_you_mean
from baton.engine.house import House
from baton.ledger.pool_records import UNSUCCESSFUL, JobState, PoolJobRecord, PoolRecord, PoolState
from baton.pool.opening import read_identity
from baton.pool.recover import is_alive, recover_pools


def find_pool(house: House, text: str | None, run_dir: Path | None = None) -> PoolRecord:
    """The pool that is meant: by id, by its job file or run directory, or, without any, the latest one.

    Raises `NotFound`, and `InvalidInput` when a path is that of several pools.
    """
    if run_dir is not None:
        pool_id = read_identity(run_dir)
        if pool_id is None:
            raise NotFound(f"{run_dir} is no run directory of a pool; `baton pool list` lists the pools")
        return house.ledger.pool(pool_id)
    known = house.ledger.pools(-1)
    if text is None:
        if not known:
            raise NotFound("there is no pool yet; `baton pool run JOBS.jsonl` begins one")
        return known[0]
    for pool in known:
        if pool.pool_id == text:
            return pool
    path = str(Path(text).resolve())
    found = [pool for pool in known if path in (pool.jobs_file, pool.run_dir)]
    if len(found) > 1:
        named = ", ".join(pool.pool_id for pool in found[:5])
        raise InvalidInput(f"{text} belongs to several pools ({named}); name one of them")
    if not found:
        advice = did_you_mean(text, [pool.pool_id for pool in known], "`baton pool list` lists the pools")
        raise NotFound(f"no pool {text!r}; {advice}")
    return found[0]


def ask_again(house: House, pool_id: str, job_ids: Sequence[str] = ()) -> list[str]:
    """Queue jobs once more; their ids.

    Those that are named run whatever became of them, a writer that may have written included: its name is the
    permission. Without names it is every one that did not succeed, but no such writer. What was skipped
    because of one of them is queued too. Raises `NotFound` for an unknown job, `WrongState` while the pool
    runs.
    """
    recover_pools(house)
    if is_alive(house, pool_id):
        raise WrongState(f"pool {pool_id} is running; wait for it, or cancel it first")
    ledger = house.ledger
    if job_ids:
        jobs = [ledger.pool_job(pool_id, job_id) for job_id in dict.fromkeys(job_ids)]
        gone = [job.job_id for job in jobs if job.state is JobState.DROPPED]
        if gone:
            raise NotFound(f"job {gone[0]!r} is no longer in the file of pool {pool_id}")
    else:
        jobs = [job for job in ledger.pool_jobs(pool_id, states=UNSUCCESSFUL) if _repeats(job)]
    changes = {job.job_id: _queued(named=bool(job_ids)) for job in jobs}
    if job_ids:
        waiting = ledger.pool_jobs(pool_id, states=[JobState.SKIPPED])
        changes = {job.job_id: _queued(named=False) for job in waiting if _repeats(job)} | changes
    ledger.settle_pool_jobs(pool_id, changes)
    return list(changes)


def cancel(house: House, pool_id: str) -> str:
    """Ask a running pool to stop, or say that one at rest is not wanted; what was done, in a word.

    Idempotent. Raises `NotFound`.
    """
    recover_pools(house)
    pool = house.ledger.pool(pool_id)
    if is_alive(house, pool_id):
        house.ledger.update_pool(pool_id, asked="cancel")
        return "asked to stop"
    if pool.state in (PoolState.INTERRUPTED, PoolState.STOPPED):
        house.ledger.update_pool(pool_id, state=PoolState.CANCELLED, note="cancelled")
        return "cancelled"
    return f"already {pool.state.value}"


def _repeats(job: PoolJobRecord) -> bool:
    return not job.writes or job.safe_retry or not job.touched


def _queued(*, named: bool) -> dict[str, object]:
    # A job that is asked for anew starts anew: what its last thread knows has not helped.
    return {
        "state": JobState.QUEUED,
        "named": named,
        "reason": None,
        "failure_class": None,
        "thread_id": None,
        "run_id": None,
        "ended_at": None,
    }
