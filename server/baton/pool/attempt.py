"""One attempt at one job, top to bottom: begin, work, look at the evidence, settle."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import anyio

from baton.codex.turn import Deadlines
from baton.contract.evidence import CheckResult, TurnFailure
from baton.contract.states import FailureClass
from baton.engine.blocking import blocking
from baton.ledger.base import now
from baton.ledger.pool_records import PoolAttemptRecord
from baton.pool.backend import Assignment, AttemptOutcome, Backend
from baton.pool.checks import run_job_checks
from baton.pool.context import PoolContext
from baton.pool.evidence import checks_trouble, message_trouble, outcome_trouble
from baton.pool.jobs import Job
from baton.pool.settings import PoolSettings
from baton.pool.trouble import Trouble

LOGS_PER_FOLDER = 1000


@dataclass(frozen=True)
class Attempted:
    """What one attempt came to; `record` is complete but for having been written."""

    record: PoolAttemptRecord
    trouble: Trouble | None
    """None when the job has succeeded, or was halted."""
    failure: TurnFailure | None
    """What Codex said of the trouble, where it did."""
    began: bool
    halted: bool
    message: bytes | None
    """The final message, to be kept as the artifact that the record names."""


@dataclass(frozen=True)
class Plan:
    """One attempt as the scheduler has decided it."""

    job: Job
    position: int
    attempt: int
    thread_id: str | None
    run_id: str | None


def first_record(pool_id: str, plan: Plan, backend: Backend) -> PoolAttemptRecord:
    """What is written before anything of the attempt is done."""
    return PoolAttemptRecord(
        pool_id=pool_id,
        job_id=plan.job.id,
        attempt=plan.attempt,
        backend=backend.name,
        thread_id=plan.thread_id,
        run_id=plan.run_id,
        log=log_name(pool_id, plan),
        writes_in=str(plan.job.workdir) if plan.job.writes and not plan.job.isolate else None,
    )


def log_name(pool_id: str, plan: Plan) -> str:
    """Where the attempt's stream of events is kept, below the state folder."""
    return f"pools/{pool_id}/{plan.position // LOGS_PER_FOLDER}/{plan.position}-{plan.attempt}.jsonl"


def deadlines_of(job: Job, settings: PoolSettings, left: float | None) -> Deadlines:
    """When waiting for an attempt ends; `left` are the seconds of the whole pool."""
    whole = settings.timeout_seconds if job.timeout_seconds is None else job.timeout_seconds
    turn = whole if left is None else max(1.0, min(whole, left))
    return Deadlines(start=settings.start_seconds, idle=settings.idle_seconds, turn=turn)


async def carry(
    backend: Backend, assignment: Assignment, record: PoolAttemptRecord, ctx: PoolContext | None
) -> Attempted:
    """Carry an attempt to its end and look at what it left.

    `ctx` is what checks need; without one there are none to run. Raises `BatonError` only for failures of
    Baton's own surroundings.
    """
    try:
        return await _carry(backend, assignment, record, ctx)
    finally:
        if ctx is not None:
            with anyio.CancelScope(shield=True):
                await blocking(ctx.made.give_back, assignment.job.id)


async def _carry(
    backend: Backend, assignment: Assignment, record: PoolAttemptRecord, ctx: PoolContext | None
) -> Attempted:
    job = assignment.job
    outcome = await backend.run(assignment)
    if outcome.failure is not None and ctx is not None:
        outcome = replace(outcome, failure=ctx.machine.home.explained(outcome.failure))
    halted = outcome.interrupted
    found = None if halted else outcome_trouble(outcome)
    if found is None and not halted:
        found = message_trouble(outcome.message, job.output_schema)
    checks: list[CheckResult] = []
    if found is None and not halted and job.verification_commands and ctx is not None and not job.isolate:
        known = await _checks(ctx, assignment)
        halted = known is None
        checks = known or []
        found = checks_trouble(checks)
    return _attempted(record, outcome, found, checks, halted)


def refused(record: PoolAttemptRecord, why: str) -> Attempted:
    """What an attempt comes to that could not be begun at all."""
    failure = TurnFailure(failure_class=FailureClass.BAD_REQUEST, message=why)
    outcome = AttemptOutcome(began=False, failure=failure)
    return _attempted(record, outcome, (failure.failure_class, why), [], False)


async def _checks(ctx: PoolContext, assignment: Assignment) -> list[CheckResult] | None:
    """The checks' results; None when they were cut because the attempt is to end early."""
    results: list[CheckResult] | None = None
    async with anyio.create_task_group() as tasks:

        async def end_on_halt() -> None:
            await assignment.halt.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(end_on_halt)
        results = await run_job_checks(ctx, assignment.job, assignment.scratch)
        tasks.cancel_scope.cancel()
    return results


def _attempted(
    record: PoolAttemptRecord,
    outcome: AttemptOutcome,
    found: tuple[Trouble, str] | None,
    checks: list[CheckResult],
    halted: bool,
) -> Attempted:
    message = None if outcome.message is None else outcome.message.encode("utf-8", "replace")
    if not message:
        message = None
    trouble, why = found if found is not None else (None, None)
    state = "succeeded" if trouble is None else "failed"
    if halted:
        state, why = "interrupted", "told to stop"
    if not outcome.began and state != "succeeded":
        state = "unstarted"
    done = record.model_copy(
        update={
            "state": state,
            "thread_id": outcome.thread_id or record.thread_id,
            "run_id": outcome.run_id or record.run_id,
            "resumed": outcome.resumed,
            "route": outcome.route,
            "attested": outcome.attested,
            "failure_class": None if trouble is None else trouble.value,
            "message": why,
            "usage": outcome.usage,
            "checks": checks,
            "notices": list(outcome.notices),
            "output": None if message is None else hashlib.sha256(message).hexdigest(),
            "output_bytes": None if message is None else len(message),
            "ended_at": now(),
        }
    )
    return Attempted(done, trouble, outcome.failure, outcome.began, halted, message)
