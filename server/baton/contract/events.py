"""The events of a run, as a contract: which kinds there are, when each is written, and what it carries.

`docs/events.md` is rendered from this; tests hold what the code writes against it. Kinds and keys are only
added: a reader ignores what it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TEXT, TEXT_OR_NULL, NUMBER, NUMBER_OR_NULL, TRUTH, TEXTS = (
    "string",
    "string or null",
    "integer",
    "integer or null",
    "boolean",
    "array of strings",
)


@dataclass(frozen=True)
class Key:
    """One key of an event's data."""

    type: str
    meaning: str
    optional: bool = False


@dataclass(frozen=True)
class EventKind:
    """One kind of event."""

    name: str
    when: str
    """Completes the sentence "written when …"."""
    data: Mapping[str, Key] = field(default_factory=dict)
    of: str = "run"
    """What it concerns: the run; a task, with its id; or an attempt, with the task's id and a number."""


_TASKS = Key(TEXTS, "ids of the tasks")
_WHY = Key(TEXT, "the reason, in one line")
_VERDICT = {"verdict": Key(TEXT_OR_NULL, "the task's verdict")}

EVENT_KINDS: tuple[EventKind, ...] = (
    EventKind(
        "run.admitted",
        "the call was accepted and recorded; nothing has been started",
        {"tasks": _TASKS, "notes": Key(TEXTS, "what admission has to say, such as a lowered effort")},
    ),
    EventKind("run.running", "its process began to work, for the first time or again"),
    EventKind(
        "run.snapshot",
        "the state of the workspace that all tasks start from was captured",
        {"commit": Key(TEXT, "in the private repository"), "notes": Key(TEXTS, "what was left out, and why")},
    ),
    EventKind("run.integrating", "results are being brought into the workspace"),
    EventKind("run.done", "it came to rest with nothing left to decide"),
    EventKind("run.held", "it came to rest with a change that is kept and did not land"),
    EventKind("run.cancelled", "somebody cancelled it"),
    EventKind(
        "run.interrupted",
        "it was stopped, or its process died and what it left was taken in",
        {"why": Key(TEXT, _WHY.meaning + "; when its process had died", optional=True)},
    ),
    EventKind("run.resumed", "somebody asked to go on with it"),
    EventKind(
        "run.continued",
        "one more turn was asked for in the thread of a task",
        {
            "attempt": Key(NUMBER, "the attempt that was planned"),
            "thread": Key(TEXT_OR_NULL, "the session that asks"),
        },
        of="task",
    ),
    EventKind(
        "run.joined",
        "another session waits for the run or steers it while it works",
        {"thread": Key(TEXT, "that session")},
    ),
    EventKind("run.kept", "somebody asked to keep it beyond its retention time", {"tasks": _TASKS}),
    EventKind("run.discarded", "somebody gave up what it keeps", {"tasks": _TASKS}),
    EventKind("task.done", "a task came to rest with a verdict", _VERDICT, of="task"),
    EventKind("task.skipped", "a task it depends on is not verified", _VERDICT, of="task"),
    EventKind("task.cancelled", "the run was cancelled before the task was done", _VERDICT, of="task"),
    EventKind("task.interrupted", "the run was stopped before the task was done", _VERDICT, of="task"),
    EventKind(
        "task.paused",
        "the task waits, because the service limits the rate of requests",
        {
            "model": Key(TEXT, "the one that nobody asks meanwhile"),
            "seconds": Key(NUMBER, "that are left of the pause, rounded up"),
            "why": _WHY,
        },
        of="task",
    ),
    EventKind(
        "attempt.planned",
        "an attempt was recorded; nothing of it has been done",
        {
            "attemptKind": Key(
                TEXT, "first, repair, recovery, fresh, escalation, wait or continue: why there is one"
            ),
            "why": Key(TEXT_OR_NULL, "the reason of one that is not the first"),
        },
        of="attempt",
    ),
    EventKind("attempt.isolated", "it has a worktree of its own", of="attempt"),
    EventKind("attempt.working", "its Codex thread is there and its brief is kept", of="attempt"),
    EventKind("attempt.captured", "the tree the worker left is a commit", of="attempt"),
    EventKind("attempt.verified", "its checks were run on that tree", of="attempt"),
    EventKind("attempt.judged", "it has a verdict", of="attempt"),
    EventKind(
        "attempt.decided",
        "what follows an attempt that did not succeed was decided",
        {
            "trouble": Key(TEXT, "the class of what went wrong"),
            "action": Key(TEXT, "retry, wait or stop"),
            "why": _WHY,
        },
        of="attempt",
    ),
    EventKind("attempt.recovered", "its process had died and its work was captured afterwards", of="attempt"),
    EventKind(
        "check",
        "Baton ran a verification command; without a task it ran on the merged tree",
        {
            "command": Key(TEXT, "as shown"),
            "status": Key(TEXT, "passed, failed, missing, timed_out, limit, not_on_tree or refused"),
        },
        of="attempt or run",
    ),
    EventKind("worker.turn_started", "Codex began a turn of the worker", of="attempt"),
    EventKind(
        "worker.command",
        "the worker ran a command",
        {
            "command": Key(TEXT, "at most 300 characters of it"),
            "exitCode": Key(NUMBER_OR_NULL, "as Codex reports it"),
        },
        of="attempt",
    ),
    EventKind(
        "worker.patch",
        "the worker applied a patch by Codex's tool; other writes show in the captured tree alone",
        {"files": Key(NUMBER, "how many it names")},
        of="attempt",
    ),
    EventKind(
        "worker.message",
        "the worker said something",
        {"text": Key(TEXT, "at most 300 characters of it")},
        of="attempt",
    ),
    EventKind(
        "worker.notice",
        "Codex reported an error of the turn",
        {
            "message": Key(TEXT, "at most 300 characters of it"),
            "willRetry": Key(TRUTH, "whether Codex goes on by itself"),
        },
        of="attempt",
    ),
    EventKind(
        "integration.merged",
        "results were merged onto the workspace as it is now",
        {"tasks": _TASKS, "leftOut": Key(TEXTS, "tasks that conflict")},
    ),
    EventKind(
        "integration.reduced",
        "the merged tree failed its checks and was made again without the tasks that break it",
        {"tasks": _TASKS, "leftOut": Key(TEXTS, "tasks that were left out")},
    ),
    EventKind(
        "integration.moved",
        "a touched file changed in the workspace; nothing was applied and it starts over",
        {"detail": Key(TEXT, "which, in one line")},
    ),
    EventKind("integration.held", "results are kept and not applied", {"reason": _WHY, "tasks": _TASKS}),
    EventKind(
        "integration.applied",
        "the verified tree is in the workspace",
        {"paths": Key(NUMBER, "how many paths changed")},
    ),
    EventKind(
        "integration.recovered",
        "an apply that was cut off was finished or undone",
        {
            "finished": Key(TRUTH, "finished; otherwise undone"),
            "notes": Key(TEXTS, "what was set aside, and where"),
        },
    ),
)

_BY_NAME = {kind.name: kind for kind in EVENT_KINDS}


def event_fault(kind: str, data: Mapping[str, Any]) -> str | None:
    """How an event departs from the contract, in one line; None when it does not. Pure."""
    known = _BY_NAME.get(kind)
    if known is None:
        return f"{kind}: no such kind"
    for name in data:
        if name not in known.data:
            return f"{kind}: carries {name!r}, which is not documented"
    for name, key in known.data.items():
        if name not in data:
            if not key.optional:
                return f"{kind}: lacks {name!r}"
        elif not _fits(data[name], key.type):
            return f"{kind}: {name!r} is not {key.type}"
    return None


def _fits(value: object, wanted: str) -> bool:
    if value is None:
        return wanted.endswith("or null")
    match wanted.removesuffix(" or null"):
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array of strings":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return False
