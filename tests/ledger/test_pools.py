"""Pools in the ledger."""

from __future__ import annotations

import pytest

from baton.contract.errors import NotFound, WrongState
from baton.contract.evidence import Usage
from baton.ledger.artifacts import Artifacts
from baton.ledger.pool_records import JobState, PoolAttemptRecord, PoolJobRecord, PoolRecord, PoolState
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger

POOL = "paaaaaaaa"


def a_pool(ledger: Ledger, jobs: int = 3, pool_id: str = POOL) -> None:
    ledger.create_pool(PoolRecord(pool_id=pool_id, jobs_file="/jobs\udcff", run_dir="/run"))
    ledger.add_pool_jobs(
        PoolJobRecord(
            pool_id=pool_id,
            job_id=f"j{number}",
            position=number,
            fingerprint=f"f{number}",
            writes=number == 1,
            safe_retry=False,
        )
        for number in range(jobs)
    )


def an_attempt(job_id: str, **fields: object) -> PoolAttemptRecord:
    values = {"pool_id": POOL, "job_id": job_id, "attempt": 1, "backend": "app-server", **fields}
    return PoolAttemptRecord.model_validate(values)


def test_a_pool_is_read_as_it_was_written(ledger: Ledger) -> None:
    a_pool(ledger)
    pool = ledger.pool(POOL)
    assert (pool.jobs_file, pool.state) == ("/jobs\udcff", PoolState.INTERRUPTED)
    assert [job.job_id for job in ledger.pool_jobs(POOL)] == ["j0", "j1", "j2"]
    with pytest.raises(NotFound, match="pool list"):
        ledger.pool("pzzzzzzzz")
    with pytest.raises(NotFound, match="no job"):
        ledger.pool_job(POOL, "j9")


def test_an_attempt_is_there_before_its_end_and_its_job_has_all_of_it_afterwards(ledger: Ledger) -> None:
    a_pool(ledger)
    ledger.begin_pool_attempt(an_attempt("j1", writes_in="/d"))
    job = ledger.pool_job(POOL, "j1")
    assert (job.state, job.attempts, job.touched) == (JobState.RUNNING, 1, True)
    assert [one.job_id for one in ledger.open_pool_attempts(POOL)] == ["j1"]
    assert ledger.open_pool_writers("pother") == ["/d"]
    assert ledger.open_pool_writers(POOL) == []
    assert ledger.unsettled_pools() == [POOL]
    ledger.name_pool_thread(POOL, "j1", 1, "thread")
    assert ledger.pool_job(POOL, "j1").thread_id == "thread"
    ended = an_attempt("j1", state="succeeded", usage=Usage(total_tokens=7), output="a" * 64, output_bytes=3)
    ledger.end_pool_attempt(ended, {"state": JobState.SUCCEEDED, "output": "a" * 64, "output_bytes": 3})
    job = ledger.pool_job(POOL, "j1")
    assert (job.state, job.output, job.output_bytes, job.tokens) == (JobState.SUCCEEDED, "a" * 64, 3, 7)
    assert ledger.open_pool_attempts(POOL) == ledger.unsettled_pools() == []
    assert ledger.pool_tokens(POOL) == 7
    assert ledger.pool_counts(POOL) == {JobState.QUEUED: 2, JobState.SUCCEEDED: 1}


def test_tokens_add_up_and_unknown_ones_are_no_zero(ledger: Ledger) -> None:
    a_pool(ledger)
    assert ledger.pool_tokens(POOL) is None
    for number, usage in enumerate([Usage(), Usage(total_tokens=5), Usage(), Usage(total_tokens=6)], start=1):
        ledger.begin_pool_attempt(an_attempt("j0", attempt=number))
        ledger.end_pool_attempt(an_attempt("j0", attempt=number, usage=usage), {"state": JobState.QUEUED})
    assert ledger.pool_tokens(POOL) == 11


def test_rows_written_again_replace_the_job_and_keep_its_attempts(ledger: Ledger) -> None:
    a_pool(ledger)
    ledger.begin_pool_attempt(an_attempt("j0"))
    ledger.end_pool_attempt(an_attempt("j0", state="failed"), {"state": JobState.FAILED})
    old = ledger.pool_job(POOL, "j0")
    ledger.add_pool_jobs([old.model_copy(update={"state": JobState.QUEUED, "fingerprint": "other"})])
    assert ledger.pool_job(POOL, "j0").fingerprint == "other"
    assert [one.state for one in ledger.pool_attempts(POOL, "j0")] == ["failed"]


def test_pools_are_found_by_the_jobs_they_know(ledger: Ledger) -> None:
    a_pool(ledger)
    a_pool(ledger, jobs=1, pool_id="pbbbbbbbb")
    many = [f"f{number}" for number in range(2000)]
    assert ledger.pools_of_fingerprints(many) == {POOL: 3, "pbbbbbbbb": 1}


def test_artifacts_of_a_pool_are_needed_until_it_is_forgotten(ledger: Ledger, state: StateFolder) -> None:
    a_pool(ledger)
    artifacts = Artifacts(state)
    name = artifacts.put_bytes(b"kept")
    ledger.begin_pool_attempt(an_attempt("j0"))
    ended = an_attempt("j0", state="succeeded", output=name, output_bytes=4)
    ledger.end_pool_attempt(ended, {"state": JobState.SUCCEEDED})
    assert list(ledger.unneeded_artifacts(artifacts, young_seconds=-1)) == []
    ledger.update_pool(POOL, state=PoolState.RUNNING)
    with pytest.raises(WrongState, match="cancel"):
        ledger.delete_pool(POOL)
    ledger.update_pool(POOL, state=PoolState.DONE)
    ledger.delete_pool(POOL)
    assert list(ledger.unneeded_artifacts(artifacts, young_seconds=-1)) == [(name, 4)]
    assert ledger.pool_attempts(POOL) == []
