"""Pools that have had their time: their logs, their threads and their record; `baton gc` calls this."""

from __future__ import annotations

import shutil
import time

from baton.contract.errors import BatonError
from baton.engine.house import House
from baton.engine.retention import DAY
from baton.ledger.locks import FileLock
from baton.ledger.pool_records import PoolRecord, PoolState
from baton.policy.load import load_policy
from baton.pool.recover import recover_pools


def collect_pools(
    house: House, *, days: float | None = None, dry_run: bool = False, faults: list[str] | None = None
) -> list[PoolRecord]:
    """Remove the pools that have been at rest for `days` (the policy's `retention.days` when None).

    What they kept as artifacts is nobody's afterwards; what was exported stays where it is. Pools that a
    process works off stay. What cannot be removed is a line in `faults` and is tried again the next time.
    Returns those that were removed, or with `dry_run` would be.
    """
    if not dry_run:
        recover_pools(house)
    limit = load_policy(house.codex_home, None).retention.days if days is None else days
    before = time.time() - limit * DAY
    removed = []
    for pool in house.ledger.pools(-1):
        if pool.state is PoolState.RUNNING or (pool.ended_at or pool.updated_at) > before:
            continue
        if dry_run:
            removed.append(pool)
            continue
        lock = FileLock(house.state.pool_lock(pool.pool_id))
        if not lock.try_acquire():
            continue
        try:
            _remove(house, pool)
            lock.remove()
            removed.append(pool)
        except (BatonError, OSError) as error:
            if faults is not None:
                faults.append(f"pool {pool.pool_id}: {' '.join(str(error).split())}")
        finally:
            lock.release()
    return removed


def _remove(house: House, pool: PoolRecord) -> None:
    """Everything of one pool; its record last, so that what is cut short is completed by the next one."""
    threads = {
        attempt.thread_id
        for attempt in house.ledger.pool_attempts(pool.pool_id)
        if attempt.thread_id is not None and attempt.run_id is None
    }
    if threads:
        for rollout in house.state.codex_home.glob("sessions/*/*/*/rollout-*.jsonl"):
            # rollout-2026-01-31T10-20-30-<thread id>.jsonl; an id is a UUID of 36 characters.
            if rollout.stem[-36:] in threads:
                rollout.unlink(missing_ok=True)
    folder = house.state.pool_folder(pool.pool_id)
    if folder.exists():
        shutil.rmtree(folder)
    house.ledger.delete_pool(pool.pool_id)
