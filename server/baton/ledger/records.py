"""What the ledger keeps, as frozen records. Times are seconds since 1970, UTC."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, JsonValue, PlainValidator

from baton.contract.evidence import AttemptResult, CheckResult, Route, TaskOutcome
from baton.contract.states import Integration, RunState, TaskState, Verdict
from baton.contract.task import IntegrateMode, Mode, Task

JsonObject = dict[str, JsonValue]


def _path_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value


PathText = Annotated[str, PlainValidator(_path_text)]
"""A path as Python holds it, bytes that are not UTF-8 as surrogate escapes, which a plain string refuses."""


class Record(BaseModel):
    """The base of every record: frozen, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RunRecord(Record):
    """One run. Times are set by the ledger."""

    run_id: str
    workspace: PathText
    """Absolute real path."""
    repo_key: str
    """Names the private repository in the state folder."""
    state: RunState = RunState.QUEUED
    mode: Mode = Mode.PARALLEL
    integrate: IntegrateMode = IntegrateMode.AUTO
    background: bool = False
    session: JsonObject = {}
    """What the asking session said of itself: thread, model, sandbox profile, Codex program."""
    policy: JsonObject = {}
    """The policy in force when the run was admitted."""
    options: JsonObject = {}
    """The other options of the call, wire names."""
    program: str = ""
    """Version of Baton that admitted the run."""
    base_commit: str | None = None
    head_commit: str | None = None
    integration: Integration | None = None
    note: str | None = None
    """One line on why the run is where it is."""
    spared: bool = False
    """Somebody asked to keep it: `baton gc` leaves it alone until it is discarded."""
    created_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None
    """When it last came to rest; None while it is not at rest."""


class TaskRecord(Record):
    """One task of a run."""

    run_id: str
    task_id: str
    position: int
    label: str | None = None
    state: TaskState = TaskState.QUEUED
    contract: Task
    depends_on: list[str] = []
    verdict: Verdict | None = None
    reasons: list[str] = []
    result: AttemptResult | None = None
    """The attempt that counts."""
    outcome: TaskOutcome = TaskOutcome()
    kept: str | None = None
    """The ref in the private repository that keeps its result."""
    created_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None


class AttemptRecord(Record):
    """One attempt at a task: written before it begins, completed as things become known."""

    run_id: str
    task_id: str
    attempt: int
    """From 1."""
    kind: str = "first"
    """Why there is this attempt: see the engine's `AttemptKind`."""
    step: str = "planned"
    """How far it came: planned, isolated, working, captured, verified, judged. Resuming starts here."""
    base_commit: str | None = None
    worktree: PathText | None = None
    thread_id: str | None = None
    route: Route | None = None
    commit: str | None = None
    """The captured commit, as soon as it is kept."""
    result: AttemptResult | None = None
    data: JsonObject = {}
    """What else the engine needs to go on after a crash."""
    started_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None


class NewEvent(Record):
    """Something that happened, to be appended in the same transaction as the change it tells of."""

    kind: str
    task_id: str | None = None
    attempt: int | None = None
    data: JsonObject = {}


class EventRecord(NewEvent):
    """One event of a run; `seq` counts from 1 within the run and only grows."""

    run_id: str
    seq: int
    created_at: float


class CommandState(StrEnum):
    """Where a command to a runner is."""

    POSTED = "posted"
    TAKEN = "taken"
    ANSWERED = "answered"


class CommandRecord(Record):
    """What a session asks of the runner of a run: cancel, integrate …"""

    command_id: int
    run_id: str
    action: str
    args: JsonObject = {}
    state: CommandState = CommandState.POSTED
    result: JsonObject | None = None
    posted_at: float
    taken_at: float | None = None
    answered_at: float | None = None


class ProcessRecord(Record):
    """One process of ours. Only pid, start time and boot together name it; see `process/tree.py`."""

    process_id: int = 0
    """Given by the ledger."""
    run_id: str | None = None
    kind: str
    """runner, app-server, check, builder …"""
    pid: int
    start_time: int
    boot_id: str
    pgid: int | None = None
    task_id: str | None = None
    attempt: int | None = None
    started_at: float = 0.0
    ended_at: float | None = None
    how: str | None = None
    """How it ended, as far as known."""


class IntegrationRecord(Record):
    """One try to bring results into the workspace: merge, verify together, apply."""

    run_id: str
    number: int
    """From 1."""
    step: str = "planned"
    """planned, merged, verified, applying, applied, held, conflict, moved, undone."""
    task_ids: list[str] = []
    workspace_commit: str | None = None
    """The snapshot merged onto; what every touched path is compared with before applying."""
    merged_commit: str | None = None
    merged_tree: str | None = None
    journal: PathText | None = None
    """Folder of the apply journal, until it is closed."""
    checks: list[CheckResult] = []
    conflicts: list[str] = []
    detail: str | None = None
    data: JsonObject = {}
    started_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None


class TicketRecord(Record):
    """One task's place in the queue for workers."""

    ticket: int = 0
    """Given by the ledger; older tickets have smaller numbers."""
    run_id: str
    task_id: str
    queued_at: float
    started_at: float | None = None
    """When it got its worker; None while it waits."""


class PauseRecord(Record):
    """That a service asked for a pause."""

    model: str
    until: float
    """Seconds since 1970."""
    why: str
    noted_at: float


class ArtifactRef(Record):
    """That a run refers to an artifact, and as what."""

    run_id: str
    name: str
    """brief, report, check-1-output …"""
    artifact: str
    task_id: str | None = None
    attempt: int | None = None
    size: int = 0
    created_at: float = 0.0
