"""How a run and its tasks are told to the supervisor: short, and with what to do next."""

from __future__ import annotations

from typing import Any

from baton.contract.evidence import AttemptResult, CheckResult, CheckStatus, Usage
from baton.contract.states import Enforcement, Integration, RunState, TaskState, Verdict
from baton.contract.task import ResultDetail
from baton.engine.life import is_kept_back
from baton.engine.plan import RunPlan
from baton.engine.shorten import MAX_ANSWER, fit, size
from baton.ledger.records import RunRecord, TaskRecord

MAX_SUMMARY = 200
MAX_REASON = 300
MAX_REASONS = 5
MAX_CHANGES = 12
MAX_TAIL = 700
MAX_WHY = (160, 60, 0)
"""Characters of the reason in a task's line; the more tasks, the shorter."""

_LETTER = {"added": "A", "modified": "M", "deleted": "D", "renamed": "R", "mode": "M", "type": "T"}


def present_single(run: RunRecord, task: TaskRecord, attempts: int) -> dict[str, Any]:
    """A run of one task: the run's state and the task's result in one flat object."""
    plan = RunPlan.model_validate(run.options)
    shown = present_task(task, attempts, full=plan.result_detail is ResultDetail.FULL)
    result: dict[str, Any] = {"runId": run.run_id, "state": run.state.value, **shown}
    if run.note:
        result["note"] = _cut(run.note, MAX_REASON)
    result["next"] = next_step(run, [task])
    return fit(result)


def present_task(task: TaskRecord, attempts: int, *, full: bool = False) -> dict[str, Any]:
    """One task: verdict with reasons, claim beside observation, route, usage, and where the result is."""
    shown: dict[str, Any] = {"taskId": task.task_id}
    if task.verdict is None:
        shown["taskState"] = task.state.value
        if task.reasons:
            shown["reasons"] = [_cut(reason, MAX_REASON) for reason in task.reasons[:MAX_REASONS]]
        return shown
    shown["verdict"] = task.verdict.value
    shown["reasons"] = [_cut(reason, MAX_REASON) for reason in task.reasons[:MAX_REASONS]]
    if task.outcome.integration is not None:
        shown["integration"] = task.outcome.integration.value
    if task.outcome.detail:
        shown["integrationDetail"] = _cut(task.outcome.detail, MAX_REASON)
    result = task.result
    if result is not None:
        shown.update(_result(result, full=full))
    if attempts > 1:
        shown["attempts"] = attempts
    if is_kept_back(task) and task.kept:
        shown["kept"] = task.kept
    return shown


def _result(result: AttemptResult, *, full: bool) -> dict[str, Any]:
    if full:
        return result.wire() | {"usage": _usage(result.usage)}
    shown: dict[str, Any] = {}
    if result.claim is not None:
        shown["claim"] = {
            "status": result.claim.status.value,
            "summary": _cut(result.claim.summary, MAX_SUMMARY),
        }
    shown["evidence"] = _evidence(result)
    if result.route is not None:
        shown["route"] = _route(result)
    shown["usage"] = _usage(result.usage)
    return shown


def _evidence(result: AttemptResult) -> dict[str, Any]:
    evidence = result.evidence
    changes = [f"{_LETTER.get(change.kind, '?')} {change.path}" for change in evidence.changes]
    shown: dict[str, Any] = {"changes": changes[:MAX_CHANGES]}
    if len(changes) > MAX_CHANGES:
        shown["moreChanges"] = len(changes) - MAX_CHANGES
    shown["scope"] = evidence.scope.enforcement.value
    if evidence.scope.enforcement is Enforcement.DETECTED and evidence.scope.why_detected:
        shown["whyDetected"] = _cut(evidence.scope.why_detected, MAX_REASON)
    if evidence.scope.violations:
        listed = evidence.scope.violations[:MAX_REASONS]
        shown["violations"] = [f"{violation.path}: {violation.rule}" for violation in listed]
    if evidence.checks:
        shown["checks"] = [_check(check) for check in evidence.checks]
    if evidence.discrepancies:
        shown["discrepancies"] = [_cut(text, MAX_REASON) for text in evidence.discrepancies[:MAX_REASONS]]
    if evidence.notices:
        shown["notices"] = [_cut(text, MAX_REASON) for text in evidence.notices[:MAX_REASONS]]
    return shown


def _check(check: CheckResult) -> dict[str, Any] | str:
    if check.status is CheckStatus.PASSED and check.sandboxed and check.detail is None:
        return f"passed: {_cut(check.command, 120)}"
    shown: dict[str, Any] = {"command": _cut(check.command, 120), "status": check.status.value}
    if check.exit_code is not None:
        shown["exitCode"] = check.exit_code
    if check.detail:
        shown["detail"] = _cut(check.detail, MAX_REASON)
    if not check.sandboxed:
        shown["sandboxed"] = False
    if check.status is not CheckStatus.PASSED and check.tail:
        shown["output"] = check.tail[-MAX_TAIL:]
    return shown


def _route(result: AttemptResult) -> dict[str, Any]:
    route = result.route
    assert route is not None
    shown: dict[str, Any] = {"model": route.model or route.asked_model}
    effort = route.effort or route.asked_effort
    if effort:
        shown["effort"] = effort
    if route.model is None:
        shown["attested"] = False
    if route.deviates:
        shown["asked"] = f"{route.asked_model} {route.asked_effort or ''}".strip()
        if route.server_claimed:
            shown["serverClaimed"] = route.server_claimed
    return shown


def _usage(usage: Usage) -> dict[str, int | None]:
    return {"in": usage.input_tokens, "out": usage.output_tokens}


def present_run(run: RunRecord, tasks: list[TaskRecord], attempts: dict[str, int]) -> dict[str, Any]:
    """A run of any size, compact: its state, and every task in a line; the only one in full."""
    if len(tasks) == 1:
        return present_single(run, tasks[0], attempts.get(tasks[0].task_id, 0))
    shown: dict[str, Any] = {"runId": run.run_id, "state": run.state.value}
    if run.note:
        shown["note"] = _cut(run.note, MAX_REASON)
    shown["next"] = next_step(run, tasks)
    for most in MAX_WHY:
        shown["tasks"] = [_line(task, most) for task in tasks]
        if size(shown) <= MAX_ANSWER:
            return shown
    kinds = [str(task.verdict or task.state) for task in tasks]
    shown["counts"] = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    # What went as it should is the least news.
    shown["tasks"] = [_line(task, MAX_WHY[0]) for task in tasks if task.verdict is not Verdict.VERIFIED]
    return fit(shown)


def _line(task: TaskRecord, most: int) -> dict[str, Any]:
    line: dict[str, Any] = {"id": task.task_id}
    if task.verdict is None:
        line["state"] = task.state.value
    else:
        line["verdict"] = task.verdict.value
    if task.outcome.integration is not None:
        line["integration"] = task.outcome.integration.value
    troubled = task.verdict not in (None, Verdict.VERIFIED) or task.state is TaskState.SKIPPED
    why = "; ".join(task.reasons[:2]) if troubled else task.outcome.detail
    if why and most:
        line["why"] = _cut(why, most)
    return line


def next_step(run: RunRecord, tasks: list[TaskRecord]) -> str:
    """What the supervisor can do now."""
    match run.state:
        case RunState.QUEUED | RunState.RUNNING | RunState.INTEGRATING:
            return "wait_run"
        case RunState.INTERRUPTED:
            return "control_run resume goes on where it stopped; control_run discard gives it up"
        case RunState.FAILED:
            return "read the note, mend it, then control_run resume"
    if run.state is RunState.DONE and all(
        task.outcome.integration in (Integration.APPLIED, Integration.NOTHING) for task in tasks
    ):
        return "review: inspect_run diff"
    if run.state is RunState.HELD:
        if all(task.verdict is Verdict.VERIFIED for task in tasks if is_kept_back(task)):
            return "inspect_run diff; then control_run integrate or discard"
        return "inspect_run diff or checks; then control_run integrate with tasks, or discard, or a new task"
    return "inspect_run report or checks says why; then a new task, or do it yourself"


def _cut(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
