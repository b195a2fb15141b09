"""Opening a pool: whose it is, alone; what is left of the last time; which jobs are still to be done."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import JsonValue

from baton.contract.errors import Busy, InvalidInput, NotFound, StateUnavailable
from baton.engine.house import House
from baton.ledger.base import now
from baton.ledger.ids import new_pool_id
from baton.ledger.locks import FileLock
from baton.ledger.pool_records import JobState, PoolJobRecord, PoolRecord
from baton.ledger.pools import KnownJob
from baton.pool.jobs import Job
from baton.pool.plan import write_json
from baton.pool.recover import recover_pool, recover_pools
from baton.pool.settings import PoolSettings

IDENTITY_FILE = "pool.json"
LOCK_FILE = ".lock"

LOST_OUTPUT = "its output is no longer what was kept"
NAME_IT = "ask for it by name to run it again"


@dataclass
class OpenPool:
    """A pool that this process alone may work off, until it is closed."""

    record: PoolRecord
    skipped: int
    """Jobs that have succeeded before and whose output still is what was kept."""
    _locks: list[FileLock]

    @property
    def pool_id(self) -> str:
        return self.record.pool_id

    def close(self) -> None:
        """Let others have it."""
        while self._locks:
            self._locks.pop().release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_pool(
    house: House, jobs_file: Path, run_dir: Path, jobs: Sequence[Job], settings: PoolSettings
) -> OpenPool:
    """Open the pool of a job file, or begin it, and write down its rows.

    The pool is the one that the run directory names; where that is new, the one that knows most of these
    jobs and whose file or run directory is gone: it was moved. Pools whose process died are recovered first.
    A job is left alone as long as its row asks for the same work; another row is another job.

    Raises `Busy` when another process works it off, `InvalidInput` when the run directory belongs to a pool
    that is not known here, `StateUnavailable` when the directory cannot be used.
    """
    recover_pools(house)
    locks: list[FileLock] = []
    try:
        locks.append(_lock_run_dir(run_dir))
        known = _named(house, run_dir)
        if known is None:
            known = _moved(house, jobs)
        else:
            _refuse_another_file(house, known, jobs_file, jobs)
        pool_id = new_pool_id() if known is None else known.pool_id
        lock = FileLock(house.state.pool_lock(pool_id))
        if not lock.try_acquire():
            raise Busy(f"another process works pool {pool_id} off; wait for it or cancel it")
        locks.append(lock)
        if known is not None:
            recover_pool(house, pool_id)
        with house.ledger.transaction():
            file, folder = str(jobs_file), str(run_dir)
            if known is None:
                house.ledger.create_pool(PoolRecord(pool_id=pool_id, jobs_file=file, run_dir=folder))
            skipped = _write_rows(house, pool_id, jobs)
            record = house.ledger.update_pool(
                pool_id, jobs_file=file, run_dir=folder, settings=_shown(settings)
            )
        # After the ledger knows it: a directory without a name yet is found again by its jobs.
        _name(run_dir, pool_id)
        return OpenPool(record, skipped, locks)
    except BaseException:
        for held in locks:
            held.release()
        raise


def _lock_run_dir(run_dir: Path) -> FileLock:
    try:
        run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StateUnavailable(
            f"the run directory {run_dir} cannot be made ({error.strerror}); name another one with --run-dir"
        ) from None
    lock = FileLock(run_dir / LOCK_FILE)
    if not lock.try_acquire():
        raise Busy(f"another process works with the run directory {run_dir}; wait for it")
    return lock


def _named(house: House, run_dir: Path) -> PoolRecord | None:
    """The pool that the run directory names; None when it names none."""
    pool_id = read_identity(run_dir)
    if pool_id is None:
        return None
    try:
        return house.ledger.pool(pool_id)
    except NotFound:
        raise InvalidInput(
            f"{run_dir / IDENTITY_FILE} names the pool {pool_id}, which {house.state.root} does not know: set"
            " BATON_STATE to the folder it was run with, or start anew with another --run-dir"
        ) from None


def read_identity(run_dir: Path) -> str | None:
    """The pool that a run directory names; None when there is no such file. Raises `InvalidInput`."""
    path = run_dir / IDENTITY_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["pool"]
        if isinstance(found, str):
            return found
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise InvalidInput(f"{path} does not name a pool: put it right, or start anew with another --run-dir")


def _name(run_dir: Path, pool_id: str) -> None:
    path = run_dir / IDENTITY_FILE
    try:
        write_json(path, {"pool": pool_id})
    except OSError as error:
        raise StateUnavailable(
            f"{path} cannot be written ({error.strerror}); name another run directory with --run-dir"
        ) from None


def _refuse_another_file(house: House, known: PoolRecord, jobs_file: Path, jobs: Sequence[Job]) -> None:
    """Two files that have nothing in common are two pools: one must not drop the rows of the other."""
    if known.jobs_file == str(jobs_file) or not os.path.lexists(known.jobs_file):
        return
    rows = house.ledger.pool_job_states(known.pool_id)
    if rows and not any(job.id in rows for job in jobs):
        raise InvalidInput(
            f"{known.run_dir} is the run directory of {known.jobs_file}, which has none of these jobs: name"
            " another one with --run-dir"
        )


def _moved(house: House, jobs: Sequence[Job]) -> PoolRecord | None:
    """The pool that these jobs came from before their file, or the run directory, was moved."""
    counts = house.ledger.pools_of_fingerprints([job.fingerprint for job in jobs])
    for pool_id, count in sorted(counts.items(), key=lambda each: -each[1]):
        pool = house.ledger.pool(pool_id)
        # By its name in it: the directory itself may have been made again just now.
        named = os.path.lexists(Path(pool.run_dir) / IDENTITY_FILE)
        gone = not os.path.lexists(pool.jobs_file) or not named
        if gone and 2 * count >= len(jobs):
            return pool
    return None


def _write_rows(house: House, pool_id: str, jobs: Sequence[Job]) -> int:
    """Bring the rows of the ledger to those of the file; how many jobs need nothing any more."""
    known = house.ledger.pool_job_states(pool_id)
    skipped = 0
    written: list[PoolJobRecord] = []
    changes: dict[str, dict[str, object]] = {}
    for position, job in enumerate(jobs):
        before = known.pop(job.id, None)
        if before is None or before.fingerprint != job.fingerprint or before.state is JobState.DROPPED:
            attempts = 0 if before is None else before.attempts
            written.append(_fresh(pool_id, position, job, attempts))
            continue
        change: dict[str, object] = {}
        if before.position != position:
            change["position"] = position
        if before.safe_retry != job.safe_retry:
            change["safe_retry"] = job.safe_retry
        if before.state is JobState.SUCCEEDED:
            if _is_kept(house, before.output, before.output_bytes):
                skipped += 1
            elif may_run(job, before):
                change |= {"state": JobState.QUEUED, "reason": LOST_OUTPUT, "thread_id": None}
            else:
                change |= {"state": JobState.INTERRUPTED, "reason": f"{LOST_OUTPUT}; {NAME_IT}"}
        elif before.state.at_rest and may_run(job, before):
            change |= {"state": JobState.QUEUED, "ended_at": None}
        if change:
            changes[job.id] = change
    for job_id, before in known.items():
        if before.state is not JobState.DROPPED:
            changes[job_id] = {"state": JobState.DROPPED, "reason": None}
    house.ledger.add_pool_jobs(written)
    house.ledger.settle_pool_jobs(pool_id, changes)
    return skipped


def may_run(job: Job, known: KnownJob) -> bool:
    """Whether a job may be started by itself: a writer that may have written only when somebody said so."""
    return not job.writes or job.safe_retry or known.named or not known.touched


def _is_kept(house: House, output: str | None, size: int | None) -> bool:
    artifacts = house.artifacts
    if output is None or not artifacts.exists(output) or artifacts.size(output) != size:
        return False
    return artifacts.is_sound(output)


def _fresh(pool_id: str, position: int, job: Job, attempts: int) -> PoolJobRecord:
    return PoolJobRecord(
        pool_id=pool_id,
        job_id=job.id,
        position=position,
        fingerprint=job.fingerprint,
        writes=job.writes,
        safe_retry=job.safe_retry,
        attempts=attempts,
        updated_at=now(),
    )


def _shown(settings: PoolSettings) -> dict[str, JsonValue]:
    return {
        "concurrency": settings.concurrency,
        "writeConcurrency": settings.write_concurrency,
        "timeoutSeconds": settings.timeout_seconds,
        "retries": settings.retries,
        "backend": settings.backend,
        "tokenBudget": settings.token_budget,
        "flags": dict(settings.flags),
    }
