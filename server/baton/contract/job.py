"""One row of a job file: what a person writes for one job of a pool."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from baton.contract.task import Text, Word

JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

Sandbox = Literal["read-only", "workspace-write"]
"""What a job may change: nothing, or files of its working folder."""


def _job_id(value: str) -> str:
    if not JOB_ID.fullmatch(value):
        raise ValueError(
            "must be 1 to 128 letters, digits and '.', '_' or '-', starting with a letter or digit"
        )
    return value


def _name(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


JobId = Annotated[str, AfterValidator(_job_id)]
Name = Annotated[Word, Field(max_length=4096), AfterValidator(_name)]
Command = Text | list[Word]


class JobRow(BaseModel):
    """One line of a job file. Keys are snake_case, as the earlier batch runner has them."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    id: JobId
    """Stable name of the job, unique in its file."""
    prompt: Text | None = None
    """What the worker is told. Either this or `prompt_file`."""
    prompt_file: Name | None = None
    """A UTF-8 file with the prompt, relative to the job file."""
    model: Name | None = None
    """A model of the installed Codex. Either this or `tier`; neither means the tier of the default role."""
    tier: Name | None = None
    """A tier of the policy."""
    effort: Name | None = None
    """Reasoning effort; default is the tier's, or the model's own."""
    sandbox: Sandbox = "read-only"
    workdir: Name = "."
    """Where the worker works: absolute, below `~`, or relative to the project."""
    safe_retry: bool = False
    """May be run again after an attempt that began and did not end well: for idempotent writers only."""
    isolate: bool = False
    """A writer works in a worktree of its own and its verified result is merged, as a batch's is."""
    ownership_scope: Name | None = None
    """What a writer owns: one scope pattern relative to `workdir`."""
    allowed_files: list[Name] = []
    """What a writer may change: scope patterns relative to `workdir`; default is `ownership_scope`."""
    output_schema: dict[str, Any] | None = None
    """JSON schema that the final message must satisfy as JSON."""
    timeout_seconds: Annotated[float, Field(gt=0, le=604_800)] | None = None
    """For one attempt; default is the pool's."""
    verification_commands: list[Command] = []
    """Run after the turn; each must succeed."""
    depends_on: list[JobId] = []
    """Jobs that must have succeeded before this one starts."""
    labels: Annotated[list[Annotated[Name, Field(max_length=120)]], Field(max_length=50)] = []
    """For people: shown and exported, never interpreted."""
