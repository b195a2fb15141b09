"""Shows what a review in a workflow would send; the plan itself is the review service's."""

from __future__ import annotations

from typing import Any

from baton.consult.plan import candidates_of
from baton.contract.errors import InvalidInput, NoAgent
from baton.contract.review import ReviewAction, ReviewCall, ReviewMode, ReviewState
from baton.contract.workflow import Step, WorkflowCall
from baton.engine.blocking import blocking
from baton.policy.load import load_policy
from baton.workflow.doors import Doors, ground_of
from baton.workflow.history import Job, unread_seats
from baton.workflow.machine import Event
from baton.workflow.outcome import move
from baton.workflow.prompt import review_goal
from baton.workflow.terms import Bound, check_unchanged, not_different


class Moved(Exception):
    """Raised when the workspace is no longer what was tested; the workflow went back to its tests."""


async def review_preview(
    doors: Doors, job: Job, call: WorkflowCall, who: Bound
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is to be sent, as it is kept and as it is shown. Raises `Moved`, and `BatonError` with why not."""
    ground = ground_of(doors.house, job.workflow)
    now = await blocking(ground.remember)
    report = job.report
    if report is None or report.tree != now.tree:
        await blocking(
            move, doors.house, job.workflow, Event.MOVED, "the workspace changed since it was tested"
        )
        raise Moved
    barred = (job.makers() if job.terms.different_from_implementer else []) + (
        job.planners() if job.terms.different_from_planner else []
    )
    for reviewer in who.parties:
        why = not_different(reviewer, barred)
        if why is not None:
            raise NoAgent(f"review: {reviewer.name} is not asked: {why}; replan the review")
    policy = load_policy(doors.house.codex_home, ground.site.workspace)
    check_unchanged(candidates_of(policy.consult, doors.consulting.adapter_of), who)
    before = next((one for one in reversed(job.steps) if one.step is Step.REVIEW and one.review_id), None)
    parent = (
        None if before is None or before.review_id is None else doors.house.ledger.review(before.review_id)
    )
    if parent is not None and before is not None and before.tree == now.tree:
        again = _again(doors, parent.review_id, parent.state, parent.consultation_id)
        if again is not None and call.context:
            raise InvalidInput("context: the same review is asked again, word for word as it was agreed to")
        if again is not None:
            request = {"review": parent.review_id, "base": now.commit, "tree": now.tree, **again}
            return request, {"reviewId": parent.review_id, "asksAgain": again["retry"]}
    since = job.workflow.base
    finalised = parent is not None and parent.state is ReviewState.FINALISED
    if finalised and before is not None and before.base is not None and before.tree != now.tree:
        since = before.base
    patch = await blocking(ground.diff, since, now.commit)
    if not patch.strip():
        way_back = doors.words.back(job.id, Step.IMPLEMENT)
        raise InvalidInput(f"review: nothing differs from the start of the workflow; {way_back}")
    several = len(who.parties) > 1
    own = call.own_findings
    if several and own is None and not finalised and not doors.words.own_findings_first:
        own = []
    if several and own is None and not finalised:
        raise InvalidInput(
            "ownFindings: several reviewers are asked; give your own findings first ([] when there are none)"
        )
    material = patch + (f"\n{call.context}\n" if call.context else "")
    asking = ReviewCall(
        action=ReviewAction.RECHECK if finalised else ReviewAction.PLAN,
        id=parent.review_id if finalised and parent is not None else None,
        goal=review_goal(job.workflow.goal, job.product(Step.PLAN), _tests(job)),
        mode=ReviewMode.DEEP if several else ReviewMode.STANDARD,
        context=material,
        reviewers=[party.name for party in who.parties],
        own_findings=own,
        workspace=job.workflow.workspace,
    )
    # How often it is looked at again is bounded by the workflow's own rounds and ceilings.
    made = await doors.reviewing.review(asking, doors.session, doors.person, any_round=True)
    keep = ("reviewId", "files", "secrets", "suspects", "masked", "estimatedCostUsd", "escalate", "notes")
    shown = {name: made[name] for name in keep if made.get(name)}
    shown["sends"] = {"diffBytes": len(patch.encode("utf-8", "replace")), "requests": made["requests"]}
    request = {
        "review": made["reviewId"],
        "token": made.get("confirm"),
        "base": now.commit,
        "tree": now.tree,
        "call": asking.wire(),
    }
    return request, shown


def _again(
    doors: Doors, review_id: str, state: ReviewState, consultation_id: str | None
) -> dict[str, Any] | None:
    """Which reviewers of a review can be asked once more for the same; None when that is not it."""
    open_states = (ReviewState.AWAITING_SYNTHESIS, ReviewState.FAILED, ReviewState.CANCELLED)
    if state not in open_states or consultation_id is None:
        return None
    unread = unread_seats(doors.house, review_id)
    if not unread:
        return None
    return {"retry": unread, "turns": len(doors.house.ledger.consult_turns(consultation_id))}


def _tests(job: Job) -> list[str]:
    report = job.report
    if report is None:
        return []
    return [f"{run.command}: {run.outcome.value} (said by {report.reported_by.value})" for run in report.runs]
