"""What each tool is called, takes, answers and may do: the declarations behind `tools/list`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import mcp_types as types

from baton.contract.base import Wire
from baton.contract.calls import ContinueCall, ControlCall, ExploreCall, InspectCall, WaitCall
from baton.contract.consult import ConsultCall, RecordsCall
from baton.contract.session import Session
from baton.contract.states import Integration, RunState, Verdict
from baton.contract.task import BatchCall, TaskCall
from baton.tools.lookup import Lookup
from baton.tools.schemas import input_schema


class Service(Lookup, Protocol):
    """What the engine offers to the tools; every answer is the whole `structuredContent`.

    A cancelled call must leave the run as it is: cancellation ends the waiting, nothing else. Each method
    raises `BatonError` for what a caller can mend.
    """

    async def delegate_task(self, call: TaskCall, session: Session) -> dict[str, Any]: ...

    async def delegate_tasks(self, call: BatchCall, session: Session) -> dict[str, Any]: ...

    async def explore(self, call: ExploreCall, session: Session) -> dict[str, Any]: ...

    async def continue_task(self, call: ContinueCall, session: Session) -> dict[str, Any]: ...

    async def wait_run(self, call: WaitCall, session: Session) -> dict[str, Any]: ...

    async def inspect_run(self, call: InspectCall, session: Session) -> dict[str, Any]: ...

    async def control_run(self, call: ControlCall, session: Session) -> dict[str, Any]: ...

    async def consult(self, call: ConsultCall, session: Session) -> dict[str, Any]: ...

    async def records(self, call: RecordsCall, session: Session) -> dict[str, Any]: ...


_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}
_OBJECT = {"type": "object"}
_OBJECTS = {"type": "array", "items": _OBJECT}
_STRINGS = {"type": "array", "items": _STRING}
_BRIEF = {"type": ["string", "object"]}
"""A line; all of it where everything is asked for."""

_ERROR = {"error": _STRING, "message": _STRING}

_RESULT: Mapping[str, dict[str, Any]] = {
    "runId": _STRING,
    "state": {"type": "string", "enum": [state.value for state in RunState]},
    "taskId": _STRING,
    "taskState": _STRING,
    "verdict": {"type": "string", "enum": [verdict.value for verdict in Verdict]},
    "reasons": _STRINGS,
    "integration": {"type": "string", "enum": [integration.value for integration in Integration]},
    "integrationDetail": _STRING,
    "claim": _OBJECT,
    "evidence": _OBJECT,
    "route": _OBJECT,
    "usage": _OBJECT,
    "attempts": _INTEGER,
    "decision": _BRIEF,
    "kept": _STRING,
    "note": _STRING,
    "tasks": _OBJECTS,
    "counts": _OBJECT,
    "notShown": _STRING,
    "did": _STRING,
    "next": _STRING,
    "findings": _OBJECTS,
    "advice": _BRIEF,
    "root": _STRING,
    "notes": _STRINGS,
    "shortened": _STRING,
    **_ERROR,
}
"""The answer for a run; nothing is required, since an error carries only `error` and `message`."""

_PLANNED: Mapping[str, dict[str, Any]] = {
    "dryRun": {"type": "boolean"},
    "workspace": _STRING,
    "base": {"type": ["string", "null"]},
    "scope": _STRING,
    "network": {},
    "maxParallel": _INTEGER,
    "whyDetected": _STRING,
    "hold": _STRING,
}
"""What a dry run tells beside it."""

_INSPECTED: Mapping[str, dict[str, Any]] = {
    "runId": _STRING,
    "what": _STRING,
    "text": _STRING,
    "bytes": _INTEGER,
    "nextOffset": _INTEGER,
    "tasks": _OBJECTS,
    "workers": _OBJECT,
    "supervisors": _OBJECTS,
    "next": _STRING,
    **_ERROR,
}
"""The answer of an inspection: text, or the structure of what was asked for; a summary is a result."""


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@dataclass(frozen=True)
class Hints:
    """What a tool may do, as clients are told."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


WORKS = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
"""It changes files of the workspace, and a worker talks to the model provider."""

STEERS = Hints(read_only=False, destructive=True, idempotent=True, open_world=True)
"""As `WORKS`, and may be repeated without harm."""

ASKS = Hints(read_only=True, destructive=False, idempotent=False, open_world=True)
"""It changes nothing, but has a worker answer."""

LOOKS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
"""It reads what is recorded."""


@dataclass(frozen=True)
class ToolSpec:
    """One tool; `name` is also the name of the method of `Service` that does it."""

    name: str
    title: str
    description: str
    arguments: type[Wire]
    output: dict[str, Any]
    hints: Hints
    asks_person: bool = False
    """Whether its method takes the way to the person as well."""

    def declaration(self) -> types.Tool:
        """The tool as `tools/list` shows it."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=input_schema(self.arguments),
            output_schema=self.output,
            annotations=types.ToolAnnotations(
                read_only_hint=self.hints.read_only,
                destructive_hint=self.hints.destructive,
                idempotent_hint=self.hints.idempotent,
                open_world_hint=self.hints.open_world,
            ),
        )


def tool_specs() -> tuple[ToolSpec, ...]:
    """The tools that are always there, in the order shown."""
    return (
        ToolSpec(
            name="delegate_task",
            title="Delegate one task",
            description=(
                "Runs one bounded task with a Codex worker in its own worktree: writes only to allowedFiles, "
                "checks re-run by Baton, applied when verified. Answers when done, or after waitSeconds with "
                "the state so far: then wait_run."
            ),
            arguments=TaskCall,
            output=_object(**_RESULT, **_PLANNED),
            hints=WORKS,
        ),
        ToolSpec(
            name="delegate_tasks",
            title="Delegate several tasks",
            description=(
                "Runs several bounded tasks as one run: parallel, sequential, or a graph by dependsOn. "
                "Parallel scopes must be disjoint. Results that fit are applied together; the others are "
                "held with the reason."
            ),
            arguments=BatchCall,
            output=_object(**_RESULT, **_PLANNED),
            hints=WORKS,
        ),
        ToolSpec(
            name="explore",
            title="Explore read-only",
            description=(
                "Has a worker answer a question from the files, changing nothing; files limits what it may "
                "read. Every finding cites file, line and quote, checked by Baton: confirmed, moved or "
                "not_found."
            ),
            arguments=ExploreCall,
            output=_object(**_RESULT),
            hints=ASKS,
        ),
        ToolSpec(
            name="continue_task",
            title="Continue a task",
            description=(
                "One more turn in a task's own worker thread, same contract, from any session: for a run at "
                "rest whose result needs more. Then verified and applied as usual."
            ),
            arguments=ContinueCall,
            output=_object(**_RESULT),
            hints=WORKS,
        ),
        ToolSpec(
            name="wait_run",
            title="Wait for a run",
            description="Waits until a run is at rest or waitSeconds have passed; answers its state.",
            arguments=WaitCall,
            output=_object(**_RESULT),
            hints=LOOKS,
        ),
        ToolSpec(
            name="inspect_run",
            title="Inspect a run",
            description="Reads the evidence of a run by offset and limit; works later and from any session.",
            arguments=InspectCall,
            output=_object(**_INSPECTED),
            hints=LOOKS,
        ),
        ToolSpec(
            name="control_run",
            title="Control a run",
            description=(
                "cancel: stop the workers, keep what they did. resume: go on with what is unfinished. "
                "integrate: merge onto the workspace as it is now, verify, apply. discard: give it up. "
                "keep: spare it from clean-up."
            ),
            arguments=ControlCall,
            output=_object(**_RESULT),
            hints=STEERS,
        ),
    )
