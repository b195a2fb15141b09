"""A machine that works pools off: the real Codex, the scripted model, and jobs made by hand."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from baton.engine.house import House
from baton.engine.stop import Stop
from baton.ledger.pool_records import JobState, PoolAttemptRecord, PoolJobRecord
from baton.pool.backend import Assignment, AttemptOutcome, Backend
from baton.pool.events import PoolEnd, PoolEvent
from baton.pool.jobs import Job, JobRoute
from baton.pool.opening import OpenPool, open_pool
from baton.pool.run import run_pool
from baton.pool.settings import PoolSettings

_lines = itertools.count(1)


def a_job(job_id: str, workdir: Path, **fields: Any) -> Job:
    """A reader with this id as its prompt, unless the fields say otherwise."""
    prompt = fields.pop("prompt", f"<{job_id}>")
    shaping = repr(sorted((name, repr(value)) for name, value in fields.items() if name != "safe_retry"))
    fingerprint = hashlib.sha256(f"{job_id} {prompt} {shaping}".encode()).hexdigest()
    values: dict[str, Any] = {
        "id": job_id,
        "line": next(_lines),
        "prompt": prompt,
        "model": None,
        "tier": "luna",
        "effort": "low",
        "route": JobRoute("gpt-5.6-luna", "low", "luna"),
        "sandbox": "read-only",
        "workdir": workdir,
        "workdir_shown": ".",
        "safe_retry": False,
        "isolate": False,
        "ownership_scope": None,
        "allowed_files": (),
        "output_schema": None,
        "timeout_seconds": None,
        "verification_commands": (),
        "depends_on": (),
        "labels": (),
        "fingerprint": fingerprint,
    }
    return Job(**{**values, **fields})


def a_writer(job_id: str, workdir: Path, **fields: Any) -> Job:
    """A writer of the whole directory, unless the fields say otherwise."""
    return a_job(job_id, workdir, **{"sandbox": "workspace-write", **fields})


def some_settings(project: Path, **fields: Any) -> PoolSettings:
    """Settings that waste no time."""
    values: dict[str, Any] = {
        "project": project,
        "run_dir": project / "run",
        "concurrency": 4,
        "write_concurrency": 1,
        "allow_disjoint_parallel_writers": False,
        "timeout_seconds": 60.0,
        "start_seconds": 30.0,
        "idle_seconds": 30.0,
        "total_seconds": None,
        "retries": 1,
        "backoff_seconds": 0.05,
        "pause_seconds": 60.0,
        "breaker_failures": 8,
        "backend": "app-server",
        "token_budget": None,
    }
    return PoolSettings(**{**values, **fields})


@dataclass
class Shop:
    """Pools of one person. Each `work` is one invocation."""

    house: House
    folder: Path
    told: list[PoolEvent] = field(default_factory=list)
    pool_id: str = ""

    @property
    def jobs_file(self) -> Path:
        return self.folder / "jobs.jsonl"

    def open(self, jobs: list[Job], settings: PoolSettings) -> OpenPool:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.jobs_file.touch()
        return open_pool(self.house, self.jobs_file, settings.run_dir, jobs, settings)

    def work(
        self,
        jobs: list[Job],
        *,
        backend: Backend | None = None,
        stop: Stop | None = None,
        beside: Callable[[Stop], Any] | None = None,
        backend_name: str = "app-server",
        **fields: Any,
    ) -> PoolEnd:
        """Work the jobs off; `beside` runs meanwhile, with the way to stop the pool."""
        settings = some_settings(self.folder, backend=backend_name, **fields)
        with self.open(jobs, settings) as opened:
            self.pool_id = opened.pool_id

            async def run() -> PoolEnd:
                asked = stop or Stop()
                async with anyio.create_task_group() as tasks:
                    if beside is not None:
                        tasks.start_soon(beside, asked)
                    end = await run_pool(
                        self.house, opened, jobs, settings, self.told.append, asked, backend=backend
                    )
                    tasks.cancel_scope.cancel()
                return end

            return anyio.run(run)

    def job(self, job_id: str) -> PoolJobRecord:
        return self.house.ledger.pool_job(self.pool_id, job_id)

    def state(self, job_id: str) -> JobState:
        return self.job(job_id).state

    def attempts(self, job_id: str) -> list[PoolAttemptRecord]:
        return self.house.ledger.pool_attempts(self.pool_id, job_id)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.told]


Act = Callable[[Assignment], "AttemptOutcome | Any"]


@dataclass
class ScriptedBackend:
    """A back end that does what a test says, by job id; without Codex, for what the queue itself decides."""

    acts: dict[str, Act] = field(default_factory=dict)
    otherwise: Act | None = None
    name: str = "scripted"
    jitter_seconds: float = 0.0
    warms_up: bool = False
    began: list[tuple[str, float]] = field(default_factory=list)
    """Every attempt that was started: the job, and when."""
    running: set[str] = field(default_factory=set)
    together: list[frozenset[str]] = field(default_factory=list)
    """Who was at work each time another one began."""

    async def start(self) -> None:
        """Nothing is needed."""

    async def close(self) -> None:
        """Nothing is left."""

    async def run(self, assignment: Assignment) -> AttemptOutcome:
        job_id = assignment.job.id
        self.began.append((job_id, time.monotonic()))
        self.running.add(job_id)
        self.together.append(frozenset(self.running))
        try:
            act = self.acts.get(job_id) or self.otherwise
            made = None if act is None else act(assignment)
            if made is not None and not isinstance(made, AttemptOutcome):
                made = await made
            return made if isinstance(made, AttemptOutcome) else done()
        finally:
            self.running.discard(job_id)

    def times(self, job_id: str) -> int:
        """How often the job was started."""
        return sum(name == job_id for name, _ in self.began)


def done(message: str = "done", **fields: Any) -> AttemptOutcome:
    """An attempt that came to its end."""
    return replace(AttemptOutcome(completed=True, message=message), **fields)
