"""How a run of several tasks is told: every task in a line as long as that is short, then by what matters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from baton.contract.states import Integration, RunState, TaskState, Verdict
from baton.contract.wording import many
from baton.engine.life import NOT_RECOVERED, is_kept_back
from baton.engine.plan import RunPlan
from baton.engine.shorten import MAX_ANSWER, fit, size
from baton.ledger.records import RunRecord, TaskRecord

SMALL = 12
"""Tasks up to which the answer keeps to `MAX_SMALL`."""
MAX_SMALL = 2_900
"""Bytes of the answer for a small batch."""
PER_TASK = 55
"""Bytes that each task beyond adds."""
MAX_WHY = (160, 90, 45)
"""Characters of the reason in a task's line; the more tasks, the shorter."""
MAX_NAMES = 6
"""Tasks that `next` names of a kind."""

LANDED = (Integration.APPLIED, Integration.NOTHING)


def present_batch(run: RunRecord, tasks: Sequence[TaskRecord], head: dict[str, Any]) -> dict[str, Any]:
    """The answer for a run of several tasks; `head` comes first. At most 3 KB for twelve, 8 KB for any."""
    shown = {**head, "next": batch_next(run, tasks)}
    most = min(MAX_ANSWER, MAX_SMALL + PER_TASK * max(0, len(tasks) - SMALL))
    for length in MAX_WHY:
        shown["tasks"] = [_line(task, length) for task in tasks]
        if size(shown) <= most:
            return shown
    kinds = [str(task.verdict or task.state) for task in tasks]
    shown["counts"] = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    # What went as it should is the least news.
    news = [task for task in tasks if not _is_clean(task)]
    for length in MAX_WHY:
        shown["tasks"] = [_line(task, length) for task in news]
        if size(shown) <= most:
            return shown
    shown["notShown"] = f"the lines of {many(len(tasks), 'task')}; inspect_run summary with taskId has each"
    return fit(shown, most)


def mended_first(run: RunRecord) -> str | None:
    """What to do about a run that cannot be recovered now: nobody works on it. None for any other."""
    if run.note is None or not run.note.startswith(NOT_RECOVERED):
        return None
    return "have what the note says mended, then wait_run; control_run cancel gives it up"


def batch_next(run: RunRecord, tasks: Sequence[TaskRecord]) -> str:
    """What landed, what is held, what failed, and what to do about each."""
    match run.state:
        case RunState.QUEUED | RunState.RUNNING | RunState.INTEGRATING:
            if (first := mended_first(run)) is not None:
                return first
            done = sum(task.state.at_rest for task in tasks)
            return f"wait_run ({done} of {len(tasks)} tasks are done)"
        case RunState.INTERRUPTED:
            return f"{_landed(tasks)}control_run resume goes on; control_run discard gives it up"
        case RunState.FAILED:
            return "read the note, mend it, then control_run resume"
    parts = []
    held = [task for task in tasks if is_kept_back(task)]
    ready = [task for task in held if task.verdict is Verdict.VERIFIED]
    if ready:
        parts.append(
            f"held: {_names(ready)}: inspect_run diff, then control_run integrate or discard with tasks"
        )
    unready = [task for task in held if task.verdict is not Verdict.VERIFIED]
    if unready:
        parts.append(
            f"not verified, kept: {_names(unready)}: inspect_run checks or diff, then a new task,"
            " control_run integrate by name, or discard"
        )
    failed = [task for task in tasks if _has_nothing(task)]
    if failed:
        parts.append(
            f"without a result: {_names(failed)}: inspect_run report, then a new task{or_yourself(run, ' ')}"
        )
    skipped = [task for task in tasks if task.state is TaskState.SKIPPED]
    if skipped:
        parts.append(f"skipped: {_names(skipped)}: delegate again when what they wait for is there")
    if not parts:
        return f"{_landed(tasks)}review: inspect_run diff"
    return _landed(tasks) + "; ".join(parts)


def or_yourself(run: RunRecord, comma: str) -> str:
    """The other way out, for a root that edits files."""
    edits = RunPlan.model_validate(run.options).root_mode == "adaptive"
    return f"{comma}or do it yourself" if edits else ""


def _landed(tasks: Sequence[TaskRecord]) -> str:
    landed = [task for task in tasks if task.outcome.integration in LANDED]
    if not landed:
        return "nothing landed; "
    if len(landed) == len(tasks):
        return "all landed; "
    return f"landed: {len(landed)} of {len(tasks)}; "


def _has_nothing(task: TaskRecord) -> bool:
    if task.outcome.integration in (*LANDED, Integration.DISCARDED) or is_kept_back(task):
        return False
    return task.state is not TaskState.SKIPPED


def _is_clean(task: TaskRecord) -> bool:
    return task.verdict is Verdict.VERIFIED and task.outcome.integration in LANDED


def _line(task: TaskRecord, length: int) -> dict[str, Any]:
    line: dict[str, Any] = {"id": task.task_id}
    if task.verdict is None:
        line["state"] = task.state.value
    else:
        line["verdict"] = task.verdict.value
    if task.outcome.integration is not None:
        line["integration"] = task.outcome.integration.value
    troubled = task.verdict not in (None, Verdict.VERIFIED) or task.state is TaskState.SKIPPED
    why = "; ".join(task.reasons[:2]) if troubled else task.outcome.detail
    if why:
        flat = " ".join(why.split())
        line["why"] = flat if len(flat) <= length else flat[: length - 1] + "…"
    return line


def _names(tasks: Iterable[TaskRecord]) -> str:
    names = [task.task_id for task in tasks]
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more
