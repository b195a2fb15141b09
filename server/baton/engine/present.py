"""How a run and its tasks are told to the supervisor: short, and with what to do next."""

from __future__ import annotations

from typing import Any

from baton.contract.advice import Choice
from baton.contract.evidence import AttemptResult, CheckResult, CheckStatus, Usage
from baton.contract.findings import CheckedFinding
from baton.contract.states import Enforcement, Integration, RunState, Verdict
from baton.contract.task import ResultDetail
from baton.engine.life import is_kept_back
from baton.engine.plan import RunPlan
from baton.engine.shorten import fit
from baton.engine.summary import mended_first, or_yourself, present_batch
from baton.ledger.records import RunRecord, TaskRecord

MAX_SUMMARY = 200
MAX_REASON = 300
MAX_ANSWERED = 1_500
"""Characters of the summary of an exploration, which is its answer."""

MAX_REASONS = 5
MAX_CHANGES = 12
MAX_NOTES = 10
MAX_TAIL = 700

_LETTER = {"added": "A", "modified": "M", "deleted": "D", "renamed": "R", "mode": "M", "type": "T"}


def present_single(run: RunRecord, task: TaskRecord, attempts: int) -> dict[str, Any]:
    """A run of one task: the run's state and the task's result in one flat object."""
    plan = RunPlan.model_validate(run.options)
    shown = present_task(task, attempts, full=plan.result_detail is ResultDetail.FULL)
    result: dict[str, Any] = {"runId": run.run_id, "state": run.state.value, **shown}
    result |= told_by_plan(plan)
    if run.note:
        result["note"] = _cut(run.note, MAX_REASON)
    result["next"] = next_step(run, [task])
    return fit(result)


def told_by_plan(plan: RunPlan) -> dict[str, Any]:
    """What was decided at admission that a caller may not expect, such as another effort than was asked.

    Also that the root edits nothing here, and the advice to do such work oneself; any other is only recorded.
    """
    told: dict[str, Any] = {}
    if plan.notes:
        told["notes"] = [_cut(note, MAX_SUMMARY) for note in plan.notes[:MAX_NOTES]]
    if plan.root_mode == "control-plane":
        told["root"] = "control-plane: edit no file yourself"
    if plan.advice is not None and plan.advice.choice is Choice.SOLO:
        told["advice"] = f"solo: {_cut(plan.advice.reasons[0], MAX_REASON)}"
    return told


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
    findings = result.evidence.findings
    if result.claim is not None:
        shown["claim"] = {
            "status": result.claim.status.value,
            "summary": _cut(result.claim.summary, MAX_SUMMARY if findings is None else MAX_ANSWERED),
        }
    if findings is not None:
        shown["findings"] = [_finding(finding) for finding in findings]
    shown["evidence"] = _evidence(result)
    if result.route is not None:
        shown["route"] = _route(result)
    shown["usage"] = _usage(result.usage)
    if result.decision is not None:
        decided = result.decision
        shown["decision"] = f"{decided.trouble}: {decided.action}: {_cut(decided.why, MAX_REASON)}"
    return shown


def _finding(finding: CheckedFinding) -> dict[str, Any]:
    """A finding with its place, which is the true one where the quote was found elsewhere."""
    shown: dict[str, Any] = {
        "statement": _cut(finding.statement, MAX_REASON),
        "at": f"{finding.file}:{finding.found_line or finding.line}",
        "citation": finding.status.value,
    }
    if finding.detail:
        shown["why"] = finding.detail
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
    shown |= told_by_plan(RunPlan.model_validate(run.options))
    return present_batch(run, tasks, shown)


def next_step(run: RunRecord, tasks: list[TaskRecord]) -> str:
    """What the supervisor can do now with a run of one task."""
    match run.state:
        case RunState.QUEUED | RunState.RUNNING | RunState.INTEGRATING:
            return mended_first(run) or "wait_run"
        case RunState.INTERRUPTED:
            return "control_run resume goes on where it stopped; control_run discard gives it up"
        case RunState.FAILED:
            return "read the note, mend it, then control_run resume"
    if run.state is RunState.DONE and all(
        task.outcome.integration in (Integration.APPLIED, Integration.NOTHING) for task in tasks
    ):
        if any(task.outcome.integration is Integration.APPLIED for task in tasks):
            return "review: inspect_run diff"
        return "nothing was to land; inspect_run report has the whole report"
    if run.state is RunState.HELD:
        if all(task.verdict is Verdict.VERIFIED for task in tasks if is_kept_back(task)):
            return "inspect_run diff; then control_run integrate or discard"
        return "inspect_run diff or checks; then control_run integrate with tasks, or discard, or a new task"
    return f"inspect_run report or checks says why; then a new task{or_yourself(run, ', ')}"


def _cut(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
