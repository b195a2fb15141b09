"""One job of a pool, closely: for a person and for a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baton.contract.evidence import Route
from baton.contract.wording import many
from baton.engine.house import House
from baton.ledger.pool_records import PoolAttemptRecord
from baton.pool.earlier import REQUESTED_ROUTE
from baton.pool.plan import ATTESTED_ROUTE
from baton.pool.present import clock, duration

MESSAGE_BYTES = 20_000
"""Of a final message, from its end; the whole is in the export."""


def job_json(house: House, pool_id: str, job_id: str) -> dict[str, Any]:
    """A job with its attempts. Raises `NotFound`."""
    job = house.ledger.pool_job(pool_id, job_id)
    attempts = house.ledger.pool_attempts(pool_id, job_id)
    text, cut = final_message(house, job.output)
    return {
        "poolId": pool_id,
        "id": job.job_id,
        "state": job.state.value,
        "reason": job.reason,
        "failureClass": job.failure_class,
        "writes": job.writes,
        "safeRetry": job.safe_retry,
        "tokens": job.tokens,
        "threadId": job.thread_id,
        "fingerprint": job.fingerprint,
        "finalMessage": text,
        "finalMessageCut": cut,
        "finalMessageSha256": job.output,
        "finalMessageBytes": job.output_bytes,
        "attempts": [_attempt_json(house, attempt) for attempt in attempts],
    }


def job_lines(house: House, pool_id: str, job_id: str) -> Iterator[str]:
    """The same for a person. Raises `NotFound`."""
    job = house.ledger.pool_job(pool_id, job_id)
    yield f"{job.job_id}  {job.state.value}" + (
        f"  {many(job.tokens, 'token')}" if job.tokens is not None else ""
    )
    if job.reason:
        yield f"  because: {job.reason}"
    for attempt in house.ledger.pool_attempts(pool_id, job_id):
        yield from _attempt_lines(house, attempt)
    text, cut = final_message(house, job.output)
    if text is not None:
        yield f"  final message ({job.output_bytes} bytes, sha256 {job.output})" + (
            ", its end" if cut else ""
        )
        yield text


def final_message(house: House, artifact: str | None) -> tuple[str | None, bool]:
    """The final message, and whether its beginning is left out; None when there is none any more."""
    if artifact is None or not house.artifacts.exists(artifact):
        return None, False
    skipped = max(0, house.artifacts.size(artifact) - MESSAGE_BYTES)
    return house.artifacts.read(artifact, skipped).decode("utf-8", "replace"), skipped > 0


def _attempt_json(house: House, attempt: PoolAttemptRecord) -> dict[str, Any]:
    return {
        "attempt": attempt.attempt,
        "state": attempt.state,
        "backend": attempt.backend,
        "startedAt": attempt.started_at,
        "endedAt": attempt.ended_at,
        "resumed": attempt.resumed,
        "threadId": attempt.thread_id,
        "runId": attempt.run_id,
        "route": attempt.route.wire() if attempt.route else None,
        "routeAttestation": _attestation(attempt),
        "failureClass": attempt.failure_class,
        "message": attempt.message,
        "usage": attempt.usage.wire() if attempt.usage else None,
        "checks": [check.wire() for check in attempt.checks],
        "notices": attempt.notices,
        "log": _log(house, attempt),
    }


def _attempt_lines(house: House, attempt: PoolAttemptRecord) -> Iterator[str]:
    took = f" in {duration(attempt.ended_at - attempt.started_at)}" if attempt.ended_at else ""
    went_on = ", went on in the thread before" if attempt.resumed else ""
    yield f"  attempt {attempt.attempt}  {clock(attempt.started_at)}  {attempt.state}{took}{went_on}"
    if attempt.route is not None:
        yield f"    route: {_route(attempt.route)} ({_attestation(attempt)})"
    if attempt.failure_class:
        yield f"    {attempt.failure_class}: {attempt.message or ''}"
    for check in attempt.checks:
        yield f"    check {check.status}: {check.command}" + (f" ({check.detail})" if check.detail else "")
    for notice in attempt.notices:
        yield f"    notice: {notice}"
    if attempt.thread_id:
        yield f"    thread: {attempt.thread_id}"
    if attempt.run_id:
        yield f"    run: {attempt.run_id} (baton runs show {attempt.run_id})"
    if (log := _log(house, attempt)) is not None:
        yield f"    events: {log}"


def _log(house: House, attempt: PoolAttemptRecord) -> str | None:
    """Where the events are, when there are any: an isolated job's are those of its run."""
    if attempt.log is None or not (log := house.state.root / attempt.log).is_file():
        return None
    return str(log)


def _route(route: Route) -> str:
    return f"{route.model or route.asked_model} {route.effort or route.asked_effort or ''}".strip()


def _attestation(attempt: PoolAttemptRecord) -> str:
    return ATTESTED_ROUTE if attempt.attested else REQUESTED_ROUTE
