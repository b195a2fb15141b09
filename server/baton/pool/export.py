"""A pool as files: `manifest.json` as the earlier runner wrote it, and each attempt's events and answer."""

from __future__ import annotations

import datetime
import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from baton.contract.errors import StateUnavailable
from baton.contract.states import FailureClass
from baton.engine.house import House
from baton.ledger.artifacts import Artifacts
from baton.ledger.pool_records import JobState, PoolAttemptRecord, PoolJobRecord, PoolRecord
from baton.pool.earlier import REQUESTED_ROUTE
from baton.pool.plan import ATTESTED_ROUTE, PLAN_FILE, write_json

MANIFEST_FILE = "manifest.json"
SCHEMA_VERSION = 2
"""The earlier runner's; its keys are kept, more are added."""

PIECE_BYTES = 1024 * 1024

_TIMED_OUT = {FailureClass.TURN_TIMEOUT, FailureClass.IDLE_TIMEOUT, FailureClass.START_TIMEOUT}


def export(house: House, pool: PoolRecord, target: Path) -> Path:
    """Write a pool to a folder, which is made; the path of its manifest.

    Each file is replaced as a whole; logs are copied piece by piece. A running pool is exported as it is now.
    Raises `StateUnavailable` when something cannot be written.
    """
    attempts: dict[str, list[PoolAttemptRecord]] = defaultdict(list)
    for attempt in house.ledger.pool_attempts(pool.pool_id):
        attempts[attempt.job_id].append(attempt)
    plan = _plan(Path(pool.run_dir))
    specs = {spec["id"]: spec for spec in plan.get("jobs", ())}
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        jobs = {
            job.job_id: _job(house, target, pool, job, attempts[job.job_id], specs.get(job.job_id))
            for job in house.ledger.pool_jobs(pool.pool_id)
            if job.state is not JobState.DROPPED
        }
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "created_at": _when(pool.created_at),
            "updated_at": _when(pool.updated_at),
            "jobs_file": pool.jobs_file,
            "backend": plan.get("backend") or _backend(str(pool.settings.get("backend"))),
            "codex": plan.get("codex"),
            "route_attestation": _attestation(str(pool.settings.get("backend")) == "app-server"),
            "pool_id": pool.pool_id,
            "state": pool.state.value,
            "note": pool.note,
            "jobs": jobs,
        }
        write_json(target / MANIFEST_FILE, manifest)
    except OSError as error:
        raise StateUnavailable(
            f"{error.filename or target} cannot be written ({error.strerror}); name another folder"
        ) from None
    return target / MANIFEST_FILE


def _plan(run_dir: Path) -> dict[str, Any]:
    """The plan of the latest invocation; empty when it is gone, since the ledger has what matters."""
    try:
        plan = json.loads((run_dir / PLAN_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return plan if isinstance(plan, dict) else {}


def _job(
    house: House,
    target: Path,
    pool: PoolRecord,
    job: PoolJobRecord,
    attempts: Sequence[PoolAttemptRecord],
    spec: dict[str, Any] | None,
) -> dict[str, Any]:
    folder = target / "jobs" / job.job_id
    if attempts:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    shown = [_attempt(house, folder, attempt) for attempt in attempts]
    entry: dict[str, Any] = {
        "spec": spec or _known_spec(job, attempts),
        "fingerprint": job.fingerprint,
        "status": job.state.value,
        "route_attestation": _attestation(bool(attempts) and attempts[-1].attested),
        "retry_policy": _retry_policy(job, int(str(pool.settings.get("retries", 0)))),
        "attempts": shown,
        "reason": job.reason,
        "failure_class": job.failure_class,
        "tokens": job.tokens,
        "thread_ids": list(dict.fromkeys(one.thread_id for one in attempts if one.thread_id)),
    }
    if job.ended_at is not None:
        entry["finished_at"] = _when(job.ended_at)
    done = next((one for one in reversed(shown) if one["status"] == "succeeded"), None)
    if job.state is JobState.SUCCEEDED and done is not None:
        entry["final_output"] = done.get("final_output")
        entry["final_artifact"] = done.get("final_artifact")
    elif job.state is JobState.FAILED:
        entry["terminal_error"] = shown[-1]["status"] if shown else job.reason
    return {key: value for key, value in entry.items() if value is not None}


def _attempt(house: House, folder: Path, attempt: PoolAttemptRecord) -> dict[str, Any]:
    stem = f"attempt-{attempt.attempt:03d}"
    entry: dict[str, Any] = {
        "number": attempt.attempt,
        "started_at": _when(attempt.started_at),
        "status": _status(attempt),
        "turn_completed": _completed(attempt),
        "thread_ids": [attempt.thread_id] if attempt.thread_id else [],
        "backend": _backend(attempt.backend),
        "route": attempt.route.wire() if attempt.route else None,
        "route_attestation": _attestation(attempt.attested),
        "resumed": attempt.resumed or None,
        "failure_class": attempt.failure_class,
        "message": attempt.message,
        "usage": attempt.usage.wire() if attempt.usage else None,
        "checks": [check.wire() for check in attempt.checks] or None,
        "notices": attempt.notices or None,
        "run_id": attempt.run_id,
    }
    if attempt.ended_at is not None:
        entry["finished_at"] = _when(attempt.ended_at)
    if attempt.log is not None and (log := house.state.root / attempt.log).is_file():
        entry["events"] = str(_copy(log, folder / f"{stem}.events.jsonl"))
        if (stderr := log.with_suffix(".stderr")).is_file():
            entry["stderr"] = str(_copy(stderr, folder / f"{stem}.stderr.log"))
    if attempt.output is not None and house.artifacts.exists(attempt.output):
        final = _copy_artifact(house.artifacts, attempt.output, folder / f"{stem}.final.txt")
        entry["final_output"] = str(final)
        entry["final_artifact"] = {
            "path": str(final),
            "size": attempt.output_bytes,
            "sha256": attempt.output,
        }
    return {key: value for key, value in entry.items() if value is not None}


def _status(attempt: PoolAttemptRecord) -> str:
    if attempt.state == "began":
        return "running"
    if attempt.state == "failed" and attempt.failure_class in _TIMED_OUT:
        return "timed_out"
    if attempt.state == "failed" and attempt.failure_class == "no_message":
        return "missing_final_output"
    return attempt.state


def _completed(attempt: PoolAttemptRecord) -> bool:
    """Whether the turn completed: it succeeded, or failed only by its evidence."""
    if attempt.state == "succeeded":
        return True
    return attempt.state == "failed" and attempt.failure_class not in {None, *FailureClass}


def _known_spec(job: PoolJobRecord, attempts: Sequence[PoolAttemptRecord]) -> dict[str, Any]:
    """What the ledger alone knows of a row."""
    route = attempts[-1].route if attempts else None
    return {
        "id": job.job_id,
        "model": route.model if route else None,
        "effort": route.effort if route else None,
        "sandbox": "workspace-write" if job.writes else "read-only",
        "safe_retry": job.safe_retry,
    }


def _retry_policy(job: PoolJobRecord, retries: int) -> dict[str, Any]:
    if not job.writes:
        return {"max_retries": retries, "reason": "read-only"}
    if job.safe_retry:
        return {"max_retries": retries, "reason": "writer-explicitly-idempotent"}
    return {"max_retries": 0, "reason": "writer-retries-disabled"}


def _attestation(attested: bool) -> str:
    return ATTESTED_ROUTE if attested else REQUESTED_ROUTE


def _backend(name: str) -> str:
    return "codex-exec" if name == "exec" else name


def _copy(source: Path, target: Path) -> Path:
    with _replacing(target) as fresh:
        shutil.copyfile(source, fresh)
    return target


def _copy_artifact(artifacts: Artifacts, name: str, target: Path) -> Path:
    size = artifacts.size(name)
    with _replacing(target) as fresh, fresh.open("wb") as file:
        for offset in range(0, size, PIECE_BYTES):
            file.write(artifacts.read(name, offset, PIECE_BYTES))
    return target


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A new file that takes the target's place when all went well."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        fresh = Path(file.name)
    try:
        yield fresh
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _when(moment: float) -> str:
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).isoformat()
