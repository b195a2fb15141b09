"""What a caller is shown of a workflow: short, with pointers to the rest.

What agents said is passed on as their words: data, never instructions.
"""

from __future__ import annotations

from typing import Any

from baton.contract.review import ReviewState
from baton.contract.workflow import Executor, Step, StepState
from baton.engine.shorten import SHORTENED, fit, size
from baton.ledger.workflow_records import WorkflowStepRecord
from baton.review.present import finding_shown
from baton.workflow.doors import Doors
from baton.workflow.history import Job, findings_of, unread_seats, used
from baton.workflow.record import needs
from baton.workflow.terms import Bound

MAX_RESULT = 1_800
"""Bytes of JSON; the line of text comes on top."""

EXCERPT = 240
FINDINGS = 12


def present(doors: Doors, job: Job, since: int, due: dict[str, Any] | None) -> dict[str, Any]:
    """Where the workflow is, what happened after step number `since`, and what is due."""
    workflow = job.workflow
    happened = [one for one in job.steps if one.number > since and one.state in _TOLD]
    shown: dict[str, Any] = {
        "workflowId": job.id,
        "state": workflow.state.value,
        "round": f"{workflow.round} of {job.terms.max_fix_rounds}",
    }
    if happened:
        shown["did"] = [step_line(one) for one in happened[-4:]]
    if workflow.note:
        shown["note"] = workflow.note
    running = job.running
    if running is not None:
        shown["working"] = {"step": running.step.value, "by": Bound.model_validate(running.binding).shown}
        shown["next"] = doors.words.wait(job.id)
    elif due is not None:
        token = due.pop("confirm")
        shown |= {"due": due, "confirm": token}
        shown["next"] = doors.words.agree(job.id, Step(due["step"]), token)
    else:
        shown["next"] = needs(doors, job)
    if workflow.state.step is Step.SYNTHESISE and running is None:
        shown |= _findings(doors, job)
    # What to do is never cut: it may hold a command.
    following = shown.pop("next")
    cut = fit(shown, MAX_RESULT - size(following))
    if SHORTENED in cut:
        cut[SHORTENED] = f"long parts are cut; {doors.words.rest(job.id)}"
    return {**cut, "next": following}


_TOLD = (StepState.DONE, StepState.FAILED)


def step_line(step: WorkflowStepRecord) -> str:
    """One step that ended, in one line."""
    who = Bound.model_validate(step.binding)
    text = f"{step.step.value} {step.state.value} by {who.shown}"
    if step.report is not None:
        runs = ", ".join(f"{run.command}: {run.outcome.value}" for run in step.report.runs)
        text += f": {runs} (said by {step.report.reported_by.value})"
    if step.detail:
        text += f": {step.detail}"
    elif step.product and who.executor is not Executor.HOST:
        text += f": {excerpt(step.product)}"
    if step.commit:
        text += f" in {step.commit[:12]}"
    return text


def excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT else flat[: EXCERPT - 1] + "…"


def _findings(doors: Doors, job: Job) -> dict[str, Any]:
    """The findings that wait for their dispositions, serious ones first."""
    done = job.last(Step.REVIEW)
    if done is None or done.review_id is None:
        return {}
    review = doors.house.ledger.review(done.review_id)
    found = findings_of(doors.house, job)
    order = ("critical", "important", "minor", "note")
    found.sort(key=lambda one: (order.index(one.severity.value), one.number))
    shown: dict[str, Any] = {
        "reviewId": review.review_id,
        "findings": [finding_shown(one, detail=False) for one in found[:FINDINGS]],
    }
    if len(found) > FINDINGS:
        shown["moreFindings"] = len(found) - FINDINGS
    unread = unread_seats(doors.house, review.review_id)
    if unread and review.state is ReviewState.AWAITING_SYNTHESIS:
        shown["unparsed"] = unread
        shown["next"] = f"{doors.words.retry(review.review_id, unread[0])}; or {needs(doors, job)}"
    return shown


def summary(doors: Doors, job: Job) -> dict[str, Any]:
    """All of a workflow at a glance: its terms, its counts, and where everything is."""
    spent = used(doors.house, job)
    shown = present(doors, job, max((one.number for one in job.steps), default=0), None)
    return shown | {
        "goal": excerpt(job.workflow.goal),
        "workspace": job.workflow.workspace,
        "bindings": {step.value: bound.shown for step, bound in job.terms.bindings.items()},
        "turns": spent.turns,
        "costUsd": None if spent.unpriced else spent.cost,
        "steps": sum(one.state in _TOLD for one in job.steps),
    }


def step_entry(step: WorkflowStepRecord) -> dict[str, Any]:
    """One step in the list of all."""
    entry: dict[str, Any] = {
        "number": step.number,
        "step": step.step.value,
        "round": step.round,
        "state": step.state.value,
        "by": Bound.model_validate(step.binding).shown,
        "consultationId": step.consultation_id,
        "runId": step.run_id,
        "reviewId": step.review_id,
        "commit": step.commit,
        "tree": step.tree,
        "tests": None if step.report is None else step.report.outcome.value,
        "reportedBy": None if step.report is None else step.report.reported_by.value,
        "detail": step.detail,
        "at": round(step.created_at),
    }
    return {name: value for name, value in entry.items() if value is not None}
