"""A job that may run: its row, checked, with its route and working folder resolved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.contract.job import Sandbox

__all__ = ["Job", "JobRoute"]


@dataclass(frozen=True, slots=True)
class JobRoute:
    """Model and effort as they will be asked for."""

    model: str
    effort: str | None
    """None for a model without efforts."""
    tier: str | None = None
    """None when the row names a model."""
    note: str | None = None
    """One line when the effort is not what was asked."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a pool. Two jobs with the same fingerprint ask for the same work."""

    id: str
    line: int
    """Line of the job file, from 1."""
    prompt: str
    model: str | None
    tier: str | None
    effort: str | None
    """Model, tier and effort as the row names them."""
    route: JobRoute
    sandbox: Sandbox
    workdir: Path
    """A real path."""
    workdir_shown: str
    """As the row has it."""
    safe_retry: bool
    isolate: bool
    ownership_scope: str | None
    allowed_files: tuple[str, ...]
    output_schema: dict[str, Any] | None
    timeout_seconds: float | None
    verification_commands: tuple[str | tuple[str, ...], ...]
    depends_on: tuple[str, ...]
    labels: tuple[str, ...]
    fingerprint: str
    """SHA-256 over what shapes the work; not over what only says when, how often or how long it is tried."""

    @property
    def writes(self) -> bool:
        return self.sandbox == "workspace-write"

    @property
    def scope(self) -> tuple[str, ...]:
        """Scope patterns of what a writer may change, relative to `workdir`; `**` when the row names none."""
        if not self.writes:
            return ()
        return self.allowed_files or ((self.ownership_scope,) if self.ownership_scope else ("**",))
