"""What a job file would do, without doing it: the launch plan, for a person, a program and the export."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from baton.codex.binary import CodexBinary
from baton.contract.wording import many
from baton.pool.earlier import REQUESTED_ROUTE
from baton.pool.jobs import Job
from baton.pool.settings import PoolSettings

ATTESTED_ROUTE = "attested-by-codex-app-server"
"""Codex itself names the model and effort that a thread runs with."""

PLAN_FILE = "plan.json"
"""In the run directory: the plan of the latest invocation."""


def attestation(settings: PoolSettings) -> str:
    """How the routes of this pool are known."""
    return ATTESTED_ROUTE if settings.backend == "app-server" else REQUESTED_ROUTE


def launch_plan(jobs: Sequence[Job], settings: PoolSettings, codex: CodexBinary) -> dict[str, Any]:
    """The plan as JSON; its keys are those of the earlier runner, and more."""
    return {
        "backend": "codex-exec" if settings.backend == "exec" else settings.backend,
        "codex": {"path": str(codex.path), "version": str(codex.version)},
        "route_attestation": attestation(settings),
        "project": str(settings.project),
        "run_dir": str(settings.run_dir),
        "config_sources": list(settings.sources),
        "notes": list(settings.notes),
        "concurrency": settings.concurrency,
        "write_concurrency": settings.write_concurrency,
        "allow_disjoint_parallel_writers": settings.allow_disjoint_parallel_writers,
        "timeout": settings.timeout_seconds,
        "retries": settings.retries,
        "backoff": settings.backoff_seconds,
        "token_budget": settings.token_budget,
        "jobs": [job_spec(job) for job in jobs],
    }


def job_spec(job: Job) -> dict[str, Any]:
    """A job without its prompt, which may be long and private."""
    spec: dict[str, Any] = {
        "id": job.id,
        "model": job.route.model,
        "effort": job.route.effort,
        "sandbox": job.sandbox,
        "workdir": str(job.workdir),
        "safe_retry": job.safe_retry,
        "ownership_scope": job.ownership_scope,
        "prompt_sha256": hashlib.sha256(job.prompt.encode()).hexdigest(),
    }
    more: dict[str, Any] = {
        "tier": job.tier,
        "route_note": job.route.note,
        "allowed_files": list(job.allowed_files),
        "isolate": job.isolate,
        "timeout_seconds": job.timeout_seconds,
        "verification_commands": [
            one if isinstance(one, str) else list(one) for one in job.verification_commands
        ],
        "output_schema": job.output_schema is not None,
        "depends_on": list(job.depends_on),
        "labels": list(job.labels),
    }
    return spec | {key: value for key, value in more.items() if value}


def plan_lines(jobs: Sequence[Job], settings: PoolSettings, codex: CodexBinary) -> Iterator[str]:
    """The plan for a person: how the pool runs, then a line for each job."""
    writers = sum(job.writes for job in jobs)
    yield f"{many(len(jobs), 'job')}, {many(writers, 'that writes', 'that write')}; nothing has been started"
    yield f"back end     {settings.backend} (routes: {attestation(settings)})"
    yield f"codex        {codex.version} {codex.path}"
    at_once = f"{many(settings.concurrency, 'job')} at once, {settings.write_concurrency} of them writing"
    yield f"concurrency  {at_once}"
    yield (
        f"attempts     {settings.timeout_seconds:g} s each, {settings.retries} more after the first where a"
        f" job may be repeated, {settings.backoff_seconds:g} s before the first of them"
    )
    if settings.token_budget is not None:
        yield f"budget       {many(settings.token_budget, 'token')}"
    yield f"project      {settings.project}"
    yield f"run folder   {settings.run_dir}"
    for source in settings.sources:
        yield f"settings     {source}"
    for note in settings.notes:
        yield f"note         {note}"
    yield ""
    for job in jobs:
        yield _job_line(job)


def _job_line(job: Job) -> str:
    route = f"{job.route.model} {job.route.effort or '-'}"
    parts = [f"{job.id:<24} {route:<22} {job.sandbox:<15} {job.workdir_shown}"]
    if job.writes:
        parts.append("changes " + ", ".join(job.scope))
    if job.isolate:
        parts.append("isolated")
    if job.depends_on:
        parts.append("after " + ", ".join(job.depends_on))
    if job.verification_commands:
        parts.append(many(len(job.verification_commands), "check"))
    if job.route.note:
        parts.append(job.route.note)
    return "  ".join(parts)


def write_plan(run_dir: Path, plan: dict[str, Any]) -> None:
    """Keep the plan in the run directory, replacing it as a whole. Raises OSError."""
    write_json(run_dir / PLAN_FILE, plan)


def write_json(path: Path, value: object) -> None:
    """Replace a file by this JSON, as a whole or not at all. Raises OSError."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        fresh = Path(file.name)
        try:
            json.dump(value, file, indent=2, ensure_ascii=True)
            file.write("\n")
            file.flush()
            fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise


def make_run_root(run_dir: Path, project: Path) -> None:
    """Make the folder of run directories. A new one inside the project is told to git as nobody's business.

    Raises OSError.
    """
    root = run_dir.parent
    if root.exists() or not root.is_relative_to(project):
        return
    root.mkdir(parents=True)
    (root / ".gitignore").write_text("*\n", encoding="utf-8")
