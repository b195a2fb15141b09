"""Arguments of the calls that watch, read and steer a run; `task.py` has those that start one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from baton.contract.base import Wire
from baton.contract.task import TaskId, Text, Word

RunId = Annotated[str, Field(min_length=1, max_length=40)]


class InspectWhat(StrEnum):
    """What `inspect_run` can show of a run."""

    SUMMARY = "summary"
    DIFF = "diff"
    CHECKS = "checks"
    REPORT = "report"
    EVENTS = "events"
    TIMELINE = "timeline"
    USAGE = "usage"
    HANDOFF = "handoff"


class ControlAction(StrEnum):
    """What `control_run` can do with a run; each is idempotent."""

    CANCEL = "cancel"
    RESUME = "resume"
    INTEGRATE = "integrate"
    DISCARD = "discard"
    KEEP = "keep"


class ExploreCall(Wire):
    """Arguments of `explore`."""

    question: Text
    files: list[str] = []
    """Patterns of what may be read; default: everything."""
    context: list[Text] = []
    """What the worker cannot see in the files."""
    role: str | None = None
    """Default: terra-explorer."""
    effort: str | None = None
    workspace: Word | None = None
    wait_seconds: Annotated[int, Field(ge=0, le=280)] = 240
    timeout_seconds: Annotated[int, Field(ge=1, le=86_400)] = 1800


class ContinueCall(Wire):
    """Arguments of `continue_task`."""

    run_id: RunId
    task_id: TaskId | None = None
    """Default: the only task."""
    message: Text
    verification_commands: list[Text | list[Word]] = []
    """Checks added to the task's."""
    wait_seconds: Annotated[int, Field(ge=0, le=280)] = 240


class WaitCall(Wire):
    """Arguments of `wait_run`."""

    run_id: RunId
    wait_seconds: Annotated[int, Field(ge=0, le=280)] = 240


class InspectCall(Wire):
    """Arguments of `inspect_run`; `offset` counts bytes of text or entries of a list, `limit` bytes."""

    run_id: RunId
    what: InspectWhat = InspectWhat.SUMMARY
    task_id: TaskId | None = None
    """Default: the only task, or all."""
    attempt: Annotated[int, Field(ge=1)] | None = None
    """Default: the last."""
    offset: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1, le=30_000)] = 6_000


class ControlCall(Wire):
    """Arguments of `control_run`."""

    run_id: RunId
    action: ControlAction
    tasks: list[TaskId] = []
    """For integrate, discard and keep: only these tasks. Default: all."""
