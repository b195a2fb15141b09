"""What the ledger keeps of pools: job files that are worked off to the end. Times are seconds since 1970."""

from __future__ import annotations

from enum import StrEnum

from baton.contract.evidence import CheckResult, Route, Usage
from baton.ledger.records import JsonObject, PathText, Record


class PoolState(StrEnum):
    """Where a pool is; `running` only as long as a process holds its lock."""

    RUNNING = "running"
    DONE = "done"
    """Nothing is left to be started; jobs may have failed."""
    STOPPED = "stopped"
    """It stopped by itself (a limit, the login, the breaker, a budget); the note says why. Jobs are left."""
    INTERRUPTED = "interrupted"
    """A signal stopped it, or its process died."""
    CANCELLED = "cancelled"


class JobState(StrEnum):
    """Where a job is inside its pool."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    """One that it depends on did not succeed."""
    INTERRUPTED = "interrupted"
    """It may have written and was cut: it is not run again unless somebody names it."""
    DROPPED = "dropped"
    """Its row is no longer in the file."""

    @property
    def at_rest(self) -> bool:
        return self not in (JobState.QUEUED, JobState.RUNNING)


UNSUCCESSFUL = (JobState.FAILED, JobState.INTERRUPTED, JobState.SKIPPED)
"""At rest, of the file, and not done."""


class PoolRecord(Record):
    """One pool: the life of one job file, over any number of invocations."""

    pool_id: str
    jobs_file: PathText
    """Absolute path, as it was at the latest invocation."""
    run_dir: PathText
    state: PoolState = PoolState.INTERRUPTED
    settings: JsonObject = {}
    """What the latest invocation ran under."""
    live: JsonObject = {}
    """What the running process says of its limits: see `baton.pool.throttle`."""
    note: str | None = None
    """One line on why the pool is where it is."""
    asked: str | None = None
    """What another process asks of the running one: `cancel`."""
    created_at: float = 0.0
    updated_at: float = 0.0
    began_at: float | None = None
    """When the latest invocation began."""
    ended_at: float | None = None


class PoolJobRecord(Record):
    """One job of a pool, with how its latest attempt ended."""

    pool_id: str
    job_id: str
    position: int
    fingerprint: str
    writes: bool
    safe_retry: bool
    state: JobState = JobState.QUEUED
    touched: bool = False
    """Work has been given out for it, whatever came of that: a writer may have written."""
    named: bool = False
    """Somebody asked for this very job again: it may run although it may have written before."""
    attempts: int = 0
    reason: str | None = None
    """One line on why it failed, waits or was skipped."""
    failure_class: str | None = None
    """The class of the latest trouble: a `FailureClass`, or what was missing of the evidence."""
    thread_id: str | None = None
    """The thread of its latest attempt, as long as another one can go on in it."""
    run_id: str | None = None
    """The run of an isolated job, as long as it can go on."""
    output: str | None = None
    """Artifact id (sha256) of the final message of the attempt that succeeded."""
    output_bytes: int | None = None
    tokens: int | None = None
    """Of all attempts together; None when none is known."""
    updated_at: float = 0.0
    ended_at: float | None = None


class PoolAttemptRecord(Record):
    """One attempt at a job: written before it begins, completed when it ends."""

    pool_id: str
    job_id: str
    attempt: int
    """From 1, over all invocations."""
    backend: str
    state: str = "began"
    """`began` until its end is known; then `succeeded`, `failed`, `interrupted` or `unstarted`, which is sure
    to have done nothing."""
    thread_id: str | None = None
    resumed: bool = False
    """Whether it went on in the thread of the attempt before."""
    route: Route | None = None
    attested: bool = False
    """Whether the route is what Codex reports as effective; else it is what was asked for."""
    failure_class: str | None = None
    message: str | None = None
    """What went wrong, as it was said."""
    usage: Usage | None = None
    checks: list[CheckResult] = []
    notices: list[str] = []
    output: str | None = None
    """Artifact id of the final message, also of an attempt that failed by its evidence."""
    output_bytes: int | None = None
    log: str | None = None
    """The stream of its events, JSON lines, as a path below the state folder."""
    run_id: str | None = None
    """The run that did the work of an isolated job."""
    writes_in: PathText | None = None
    """The directory in which it may write itself."""
    started_at: float = 0.0
    ended_at: float | None = None


class PoolProcessRecord(Record):
    """A process of a pool; pid, start time and boot together name it."""

    process_id: int = 0
    """Given by the ledger."""
    pool_id: str
    kind: str
    pid: int
    start_time: int
    boot_id: str
    ended_at: float | None = None
