"""The `pool` table of the policy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from baton.policy.narrowing import FIXED, MAX, MIN, ordered
from baton.policy.section import Count, FolderPath, Seconds, Section


class PoolModes(Section):
    """Jobs at once in each mode of a pool."""

    conservative: Annotated[Count, MAX]
    """Small work, or a login with little left."""
    balanced: Annotated[Count, MAX]
    """The usual."""
    large: Annotated[Count, MAX]
    """Many independent jobs; also the most that a project's `orchestration.toml` may ask for."""


class PoolRules(Section):
    """How `baton pool` runs a job file. Flags of the command win over all of it."""

    mode: Annotated[
        Literal["conservative", "balanced", "large"], ordered("large", "balanced", "conservative")
    ]
    """Which of the modes below says how many jobs run at once."""
    modes: PoolModes
    write_concurrency: Annotated[Count, MAX]
    """Writers at once; more than one only with the next key."""
    allow_disjoint_parallel_writers: Annotated[bool, ordered(True, False)]
    """Let writers run at once whose scopes are disjoint; each must declare one."""
    timeout_seconds: Annotated[Seconds, MAX]
    """For one attempt of a job that names no time of its own."""
    total_seconds: Annotated[Seconds, MAX]
    """For one invocation of the command; what is left then is resumed by the next."""
    retries: Annotated[Annotated[int, Field(ge=0, le=100)], MAX]
    """Further attempts of a job that may be run again."""
    backoff_seconds: Annotated[Annotated[float, Field(ge=0, le=3600)], MIN]
    """Before the first of them; doubled for each further one."""
    pause_seconds: Annotated[Seconds, MAX]
    """The longest pause that a limited service is waited for; beyond it the pool stops, resumable."""
    breaker_failures: Annotated[Count, MAX]
    """So many failures of one class in a row stop the pool."""
    token_budget: Annotated[Annotated[int, Field(ge=0, le=10**15)], FIXED]
    """Tokens that one pool may use over all its invocations; 0 sets no limit."""
    backend: Annotated[Literal["app-server", "exec"], ordered("exec", "app-server")]
    """`app-server` attests the effective route; `exec` runs `codex exec`, whose route is only requested."""
    run_root: Annotated[FolderPath, FIXED]
    """Where pools keep their run directories, relative to the project."""
