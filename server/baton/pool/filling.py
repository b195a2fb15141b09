"""What a pool that begins puts into its queue, from its rows and from what the ledger knows of them."""

from __future__ import annotations

from collections.abc import Sequence

from baton.ledger.pool_records import JobState
from baton.ledger.pools import KnownJob
from baton.ledger.store import Ledger
from baton.pool.afterwards import skipped
from baton.pool.jobs import Job
from baton.pool.opening import may_run
from baton.pool.queue import Entry, JobQueue


def fill(queue: JobQueue, ledger: Ledger, pool_id: str, jobs: Sequence[Job]) -> None:
    """Queue what is to be done; what waits for a job that did not succeed is skipped, on the record too."""
    past = ledger.pool_job_states(pool_id, fresh=False)
    lost: list[str] = []
    waiting: list[Entry] = []
    for position, job in enumerate(jobs):
        before = past.get(job.id)
        entry = Entry(job, position)
        if before is not None:
            if before.state.at_rest:
                if before.state is not JobState.SUCCEEDED:
                    lost.append(job.id)
                continue
            if not may_run(job, before):
                raise AssertionError(f"job {job.id} may not run again and is queued")
            entry.attempts, entry.touched, entry.named = before.attempts, before.touched, before.named
            entry.thread_id, entry.run_id = before.thread_id, before.run_id
        missing = [name for name in job.depends_on if not _has_succeeded(past.get(name))]
        queue.add_after(entry, missing)
        if not missing:
            waiting.append(entry)
    for entry in waiting:
        queue.add(entry)
    lost_too = {entry.job.id: skipped(name) for job_id in lost for entry, name in queue.lost(job_id)}
    ledger.settle_pool_jobs(pool_id, lost_too)


def _has_succeeded(known: KnownJob | None) -> bool:
    return known is not None and known.state is JobState.SUCCEEDED
