"""How one pool runs: what policy, earlier configuration files and flags come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

BackendName = Literal["app-server", "exec"]


@dataclass(frozen=True)
class PoolSettings:
    """The settings in force for one pool. Times are seconds."""

    project: Path
    """The folder that relative working folders and the run root are read from, as a real path."""
    run_dir: Path
    """Where this pool keeps its lock and what is exported."""
    concurrency: int
    """Jobs at once, at most."""
    write_concurrency: int
    """Writers at once, at most; never above `concurrency`."""
    allow_disjoint_parallel_writers: bool
    timeout_seconds: float
    """For one attempt of a job that names no time of its own."""
    start_seconds: float
    """For Codex to start a job's thread or process."""
    idle_seconds: float
    """Without any event from a working job."""
    total_seconds: float | None
    """For the whole pool in one invocation."""
    retries: int
    """Further attempts after the first, for jobs that may be run again."""
    backoff_seconds: float
    """Before the first retry; doubled for each further one."""
    pause_seconds: float
    """The longest pause that a limited service is waited for; beyond it the pool stops, resumable."""
    breaker_failures: int
    """So many failures of one class in a row, with no success between, stop the pool."""
    backend: BackendName
    token_budget: int | None
    """Tokens of all attempts of this pool together, over every invocation."""
    sources: tuple[str, ...] = ()
    """The files that had a say, weakest first, and `flags`."""
    flags: Mapping[str, JsonValue] = field(default_factory=dict)
    """What the command line said, kept with the pool so that `baton pool retry` says it again."""
    notes: tuple[str, ...] = ()
    """What a person should know of how the settings were read."""
