"""How runs work: how much at once, deadlines, limits, what workers and checks reach, retention."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from baton.policy.narrowing import FIXED, MAX, SUBSET, ordered
from baton.policy.section import (
    LOOSE,
    Argv,
    Bytes,
    Count,
    FolderName,
    Host,
    Seconds,
    Section,
    VariableNames,
    unique,
)


class Concurrency(Section):
    """How much runs at once."""

    max_parallel: Annotated[Count, MAX]
    """Workers at once in one run; further tasks wait."""
    max_workers: Annotated[Count, MAX]
    """Workers at once in all runs of this machine together; they take turns."""
    max_threads_per_server: Annotated[Annotated[int, Field(ge=1, le=64)], MAX]
    """Threads in one Codex app-server process; more workers start another one."""


class Deadlines(Section):
    """When waiting ends, in seconds. Each one that fires is named in the result."""

    start_seconds: Annotated[Seconds, MAX]
    """For Codex to start a worker's thread."""
    idle_seconds: Annotated[Seconds, MAX]
    """Without any event from a working worker."""
    turn_seconds: Annotated[Seconds, MAX]
    """For one turn of a worker."""
    run_seconds: Annotated[Seconds, MAX]
    """For a whole run."""
    check_seconds: Annotated[Seconds, MAX]
    """For one verification command."""
    owner_grace_seconds: Annotated[Seconds, MAX]
    """From the end of the session that waits until its run stops, so that another session can take over."""


class Limits(Section):
    """How much of everything is handled. Sizes are bytes."""

    kept_bytes: Annotated[Annotated[int, Field(ge=0, le=2**53)], FIXED]
    """Ignored and nested content of one attempt that is kept beside its result."""
    check_memory_bytes: Annotated[Bytes, MAX]
    """Memory of one verification command with all its children."""
    check_output_bytes: Annotated[Bytes, MAX]
    """Output of one verification command; more ends it."""
    plain_folder_files: Annotated[Count, MAX]
    """Files in a workspace that is not a git repository."""
    plain_folder_bytes: Annotated[Bytes, MAX]
    """Size of a workspace that is not a git repository."""
    scope_siblings: Annotated[Count, FIXED]
    """Neighbours of a file scope made read-only one by one; with more, writes there are only detected."""


class Environment(Section):
    """Names of environment variables let through beside the built-in list."""

    pass_to_workers: Annotated[VariableNames, SUBSET]
    """For commands that workers run. A worker can read and print what is named here."""
    pass_to_checks: Annotated[VariableNames, SUBSET]
    """For verification commands."""


class Network(Section):
    """What workers may reach."""

    worker_hosts: Annotated[tuple[Host, ...], LOOSE, AfterValidator(unique), SUBSET]
    """Hosts that workers may connect to; empty means no network at all."""


class EnforcementRules(Section):
    """What happens where a boundary cannot be held by the sandbox."""

    require_prevention: Annotated[bool, ordered(False, True)]
    """Refuse a task whose scope the sandbox cannot hold, instead of detecting violations afterwards."""


class Dependencies(Section):
    """Installed dependencies of the workspace, which a worker's fresh worktree lacks."""

    folders: Annotated[tuple[FolderName, ...], LOOSE, AfterValidator(unique), SUBSET]
    """Folder names looked for in the workspace."""
    mode: Annotated[Literal["copy", "link", "none"], ordered("copy", "link", "none")]
    """`link`: read-only to the worker. `copy`: the worker has its own. `none`: not there."""


class Checks(Section):
    """How verification commands run."""

    unsandboxed: Annotated[tuple[Argv, ...], LOOSE, AfterValidator(unique), SUBSET]
    """Beginnings of commands that run without the sandbox, each a list of words; every result says so."""


class Retention(Section):
    """When results are old enough for `baton gc`."""

    days: Annotated[Count, FIXED]
    """Days that a finished run is kept."""
    max_bytes: Annotated[Bytes, FIXED]
    """Size of all kept results together; beyond it the oldest go first."""
