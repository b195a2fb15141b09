"""What a supervisor asks for: one bounded task, and the call that carries tasks."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from baton.contract.advice import Facts
from baton.contract.base import Wire
from baton.contract.states import ChangeIntent

TASK_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")

MAX_TEXT = 200_000
"""Characters a single text of a task may have; a worker's context would not hold more."""


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return _word(value)


def _word(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode (it has a lone surrogate)") from None
    return value


def _task_id(value: str) -> str:
    if not TASK_ID.fullmatch(value):
        raise ValueError("must be 1 to 40 of a-z, 0-9 and '-', starting with a letter or digit")
    return value


Text = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_text)]
Word = Annotated[str, AfterValidator(_word)]
"""Text that may be empty and can be handed to a program."""
TaskId = Annotated[str, AfterValidator(_task_id)]


class TaskCategory(StrEnum):
    """The kind of work, for routing and reports."""

    IMPLEMENTATION = "implementation"
    TESTS = "tests"
    BUGFIX = "bugfix"
    REFACTOR = "refactor"
    INVESTIGATION = "investigation"
    CHORE = "chore"


class Mode(StrEnum):
    """How the tasks of one call relate when `dependsOn` says nothing."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


class IntegrateMode(StrEnum):
    """Whether verified results are applied to the workspace or held for a decision."""

    AUTO = "auto"
    HOLD = "hold"


class ResultDetail(StrEnum):
    """How much a result shows at once; everything stays retrievable by `inspect_run`."""

    COMPACT = "compact"
    FULL = "full"


class ContextCapsule(Wire):
    """What a worker cannot infer from the repository; empty parts are left out of its brief."""

    relevant_context: list[Text] = []
    interfaces: list[Text] = []
    dependencies: list[Text] = []
    invariants: list[Text] = []
    upstream_decisions: list[Text] = []
    known_pitfalls: list[Text] = []


class Task(Wire):
    """One bounded piece of work for one worker."""

    objective: Text
    """What must be so when the worker is done."""
    allowed_files: list[str] = []
    """Gitignore patterns, relative to the workspace, of what may change. Required unless nothing may."""
    forbidden_files: list[str] = []
    """Patterns that may not change; they win over the allowed ones."""
    hidden_files: list[str] = []
    """Patterns that the worker may not read."""
    role: str | None = None
    """A role of the policy; default is the policy's."""
    tier: str | None = None
    """A tier of the policy, instead of a role."""
    effort: str | None = None
    """Reasoning effort; default is the role's."""
    effort_reason: Text | None = None
    task_category: TaskCategory = TaskCategory.IMPLEMENTATION
    change_intent: ChangeIntent = ChangeIntent.REQUIRED
    acceptance_criteria: list[Text] = []
    verification_commands: list[Text | list[Word]] = []
    """Commands that Baton runs on the captured tree: a string is read as one argv by shell quoting rules."""
    context_capsule: ContextCapsule | None = None
    previous_attempts: list[Text] = []
    depends_on: list[TaskId] = []
    timeout_seconds: Annotated[int, Field(ge=1, le=86_400)] = 1800
    id: TaskId | None = None
    label: Annotated[Word, Field(max_length=120)] | None = None


class CallOptions(Wire):
    """What one call says about the run as a whole."""

    workspace: Word | None = None
    """Absolute path; default is the session's folder."""
    integrate: IntegrateMode = IntegrateMode.AUTO
    background: bool = False
    """Go on when the session ends; the run then ends held."""
    result_detail: ResultDetail = ResultDetail.COMPACT
    wait_seconds: Annotated[int, Field(ge=0, le=280)] = 240
    dry_run: bool = False
    facts: Facts | None = None
    """What speaks for delegating or against it; recorded with the advice, refuses nothing."""


class TaskCall(Task, CallOptions):
    """Arguments of `delegate_task`: a task and its call in one flat object."""


class BatchCall(CallOptions):
    """Arguments of `delegate_tasks`."""

    tasks: Annotated[list[Task], Field(min_length=1)]
    mode: Mode = Mode.PARALLEL
    max_parallel: Annotated[int, Field(ge=1)] | None = None
    allow_overlap: bool = False
