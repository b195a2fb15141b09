"""Does the steps that leave the session: starts each once, and takes in what came of it.

Whatever is started can be found again by the workflow and the step alone, so that after a kill it is taken
in and never started twice.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from baton.consult.content import Content
from baton.consult.plan import TITLE
from baton.contract.calls import WaitCall
from baton.contract.consult import ConsultationState, ConsultCall, TurnState
from baton.contract.errors import BatonError, NotFound, WrongState
from baton.contract.review import Decision, ReviewAction, ReviewCall, ReviewState
from baton.contract.review import Secrets as SecretsChoice
from baton.contract.states import RunState, Verdict
from baton.contract.task import BatchCall, IntegrateMode, Task
from baton.contract.workflow import Executor, Step, StepState
from baton.engine.blocking import blocking
from baton.ledger.consult_records import ConsultTurnRecord
from baton.ledger.workflow_records import WorkflowStepRecord
from baton.review.confirm import approval_of
from baton.workflow.doors import Doors, ground_of
from baton.workflow.ground import DoesNotApply, patch_in
from baton.workflow.history import Job, check_ceilings, unread_seats
from baton.workflow.machine import Event
from baton.workflow.outcome import Outcome
from baton.workflow.preview import planned
from baton.workflow.stopping import label_of, stop_if_dropped
from baton.workflow.synthesis import finalise
from baton.workflow.terms import Bound, Party

KIND = "workflow"
"""The kind of a consultation that is a step."""


async def begin(doors: Doors, job: Job, step: WorkflowStepRecord) -> None:
    """Spend the token and start what was shown. Raises `BatonError`; the token still holds then."""
    who = Bound.model_validate(step.binding)
    check_ceilings(doors.house, job, max(len(who.parties), 1))
    ground = ground_of(doors.house, job.workflow)
    if step.step is Step.REVIEW and (await blocking(ground.snapshot)).tree != step.request["tree"]:
        raise WrongState("the workspace changed since the review was shown; nothing was sent; see it again")
    if step.step is Step.REVIEW or who.executor is Executor.ISOLATED:
        await blocking(_spend, doors, step)
        return
    asking = ConsultCall.model_validate(step.request["call"])
    plan, sent = await planned(doors, asking, who)
    if approval_of({"step": step.step.value, "call": step.request["call"], "sent": sent}) != step.approval:
        raise WrongState("what would be sent has changed since it was shown; nothing was sent; see it again")
    title = " ".join(f"{step.step.value}: {job.workflow.goal}".split())[:TITLE]
    part = {"kind": KIND, "parent": label_of(step), "title": title}
    plan = replace(plan, consultation=plan.consultation.model_copy(update=part))
    started: dict[str, object] = {"consultation_id": plan.consultation.consultation_id}
    if who.executor is Executor.PATCH:
        # The patch is made for the files as they are when it is asked for, which the agent may read.
        now = await blocking(ground.snapshot)
        await blocking(ground.keep, f"base-{step.number}", now.commit)
        started |= {"base": now.commit, "request": {**step.request, "head": now.head}}
    await blocking(doors.consulting.begin, plan, lambda: _spend(doors, step, **started))


def _spend(doors: Doors, step: WorkflowStepRecord, **fields: object) -> None:
    doors.house.ledger.change_workflow_step(
        step.workflow_id, step.number, StepState.PREVIEWED, state=StepState.RUNNING, token=None, **fields
    )


async def settle(doors: Doors, job: Job, step: WorkflowStepRecord, until: float) -> Outcome | None:
    """What came of a running step; None while it is at work."""
    who = Bound.model_validate(step.binding)
    if step.step is Step.REVIEW:
        return await _review(doors, step, until)
    if who.executor is Executor.ISOLATED:
        return await _isolated(doors, job, step, who, until)
    return await _asked(doors, job, step, who, until)


def seconds_left(until: float) -> int:
    return max(0, min(280, int(until - time.monotonic())))


# -- a question to an agent ---------------------------------------------------------------------------


async def _asked(
    doors: Doors, job: Job, step: WorkflowStepRecord, who: Bound, until: float
) -> Outcome | None:
    assert step.consultation_id is not None, "it is written together with the start"
    await doors.consulting.wait(step.consultation_id, seconds_left(until))
    return await _taken(doors, job, step, who)


async def _taken(doors: Doors, job: Job, step: WorkflowStepRecord, who: Bound) -> Outcome | None:
    ledger = doors.house.ledger
    try:
        consultation = ledger.consultation(str(step.consultation_id))
    except NotFound:
        return Outcome(Event.BROKEN, "its consultation was deleted")
    if consultation.state is ConsultationState.WORKING:
        return None
    turn = ledger.consult_turns(consultation.consultation_id)[-1]
    answer = await blocking(Content(doors.house, consultation).answer, turn)
    text = answer.text if answer is not None else None
    fields: dict[str, object] = {"product": text, "binding": _really(who, turn).wire()}
    if who.executor is Executor.PATCH:
        told = answer.structured if answer is not None else None
        return await blocking(_patch, doors, job, step, told, text, _fault(turn), fields)
    if turn.state is not TurnState.ANSWERED or answer is None:
        return Outcome(Event.BROKEN, _fault(turn), fields)
    if step.step is Step.SYNTHESISE:
        # It satisfies the schema, or the turn would have failed.
        told = dict(answer.structured or {})
        decisions = [
            Decision(finding=one["finding"], disposition=one["disposition"], reason=one["reason"] or None)
            for one in told["dispositions"]
        ]
        fields["product"] = told["conclusion"]
        try:
            return await finalise(doors, job, decisions, told["conclusion"], None, fields)
        except BatonError as error:
            return Outcome(Event.BROKEN, error.message, fields)
    return Outcome(Event.DONE, None, fields)


def _fault(turn: ConsultTurnRecord) -> str | None:
    if turn.state is TurnState.ANSWERED:
        return None
    kind = turn.failure.value if turn.failure else turn.state.value
    return f"{turn.agent}: {kind}{f': {turn.detail}' if turn.detail else ''}"


def _really(who: Bound, turn: ConsultTurnRecord) -> Bound:
    """Who answered, as it was reported."""
    model = turn.model or turn.asked_model
    party = who.parties[0].model_copy(update={"model": model})
    return who.model_copy(update={"parties": [party]})


def _patch(
    doors: Doors,
    job: Job,
    step: WorkflowStepRecord,
    told: Any,
    text: str | None,
    fault: str | None,
    fields: dict[str, object],
) -> Outcome:
    """The patch of an answer, if it applies to what it was made for."""
    given = told if isinstance(told, dict) else {}
    summary, patch = given.get("summary") or text, given.get("patch")
    # An answer in another form than asked for may hold a patch all the same: it was paid for.
    patch = (patch_in(patch) or patch) if patch and patch.strip() else patch_in(text or "")
    fields["product"] = summary
    if not patch:
        return Outcome(
            Event.BROKEN, fault or f"no patch in the answer: {summary or 'it is empty'}"[:400], fields
        )
    fields["output"] = patch
    if len(patch.encode("utf-8", "replace")) > job.terms.max_patch_bytes:
        why = f"the patch is larger than {job.terms.max_patch_bytes} bytes (workflow.max_patch_bytes)"
        return Outcome(Event.NOT_APPLIED, why, fields)
    if not patch.endswith("\n"):
        patch += "\n"
    ground = ground_of(doors.house, job.workflow)
    assert step.base is not None
    try:
        fields["result"] = ground.patched(step.base, patch, job.terms.allowed_files, step.number)
    except DoesNotApply as error:
        return Outcome(Event.NOT_APPLIED, f"the patch does not apply: {error.reason}", fields)
    return Outcome(Event.PATCH, None, fields)


# -- an isolated worker -------------------------------------------------------------------------------


async def _isolated(
    doors: Doors, job: Job, step: WorkflowStepRecord, who: Bound, until: float
) -> Outcome | None:
    ledger = doors.house.ledger
    run_id = step.run_id or await blocking(ledger.run_labelled, label_of(step))
    if run_id is None:
        task = Task.model_validate(step.request["task"]).model_copy(update={"label": label_of(step)})
        call = BatchCall(
            tasks=[task],
            workspace=job.workflow.workspace,
            integrate=IntegrateMode.HOLD,
            background=True,
            wait_seconds=0,
        )
        try:
            run_id = (await doors.engine.delegate_tasks(call, doors.session))["runId"]
        except BatonError as error:
            return Outcome(Event.BROKEN, error.message)
    await stop_if_dropped(doors, step)
    if step.run_id is None:
        ledger.change_workflow_step(step.workflow_id, step.number, StepState.RUNNING, run_id=run_id)
    await doors.engine.wait_run(WaitCall(run_id=run_id, wait_seconds=seconds_left(until)), doors.session)
    run = ledger.run(run_id)
    if not run.state.at_rest:
        return None
    return await blocking(_worked, doors, job, step, who, run_id, run.state)


def _worked(
    doors: Doors, job: Job, step: WorkflowStepRecord, who: Bound, run_id: str, state: RunState
) -> Outcome:
    (task,) = doors.house.ledger.tasks(run_id)
    result = task.result
    fields: dict[str, object] = {"run_id": run_id}
    if result is None or result.evidence.commit is None:
        return Outcome(Event.BROKEN, f"run {run_id} is {state.value} without a result", fields)
    fields["product"] = result.claim.summary if result.claim is not None else None
    if result.route is not None:
        model = result.route.model or result.route.asked_model
        party: Party = who.parties[0].model_copy(update={"model": model})
        fields["binding"] = who.model_copy(update={"parties": [party]}).wire()
    if task.verdict not in (Verdict.VERIFIED, Verdict.UNVERIFIED):
        verdict = task.verdict.value if task.verdict else state.value
        why = "; ".join(task.reasons[:3])
        kept = f"; kept in {task.kept}" if task.kept else ""
        return Outcome(Event.BROKEN, f"run {run_id}: {verdict}: {why}{kept}"[:400], fields)
    ground = ground_of(doors.house, job.workflow)
    ground.keep(step.number, result.evidence.commit)
    ground.keep(f"base-{step.number}", result.evidence.base)
    head = doors.house.ledger.run(run_id).head_commit
    fields |= {"base": result.evidence.base, "result": result.evidence.commit}
    fields["request"] = {**step.request, "head": head}
    return Outcome(Event.PATCH, None, fields)


# -- a review -----------------------------------------------------------------------------------------


async def _review(doors: Doors, step: WorkflowStepRecord, until: float) -> Outcome | None:
    """The review service asks, reads and keeps; here is only waited for it."""
    ledger, review_id = doors.house.ledger, str(step.review_id)
    request = step.request
    fields: dict[str, object] = {"result": request["base"], "tree": request["tree"]}
    look = ReviewCall(action=ReviewAction.STATUS, id=review_id)
    call: ReviewCall | None = None
    try:
        review = ledger.review(review_id)
        if review.state is ReviewState.PLANNED:
            call = ReviewCall(
                action=ReviewAction.RUN,
                id=review_id,
                confirm=str(token) if (token := request.get("token")) is not None else None,
                # What it holds was shown with the step, whose token stands for it.
                secrets=SecretsChoice.SEND,
                wait_seconds=0,
            )
        elif request.get("retry") and review.consultation_id is not None:
            asked = len(ledger.consult_turns(review.consultation_id))
            if asked == request["turns"]:
                call = ReviewCall(action=ReviewAction.RETRY, id=review_id, wait_seconds=0)
        if call is not None:
            await doors.reviewing.review(call, doors.session, doors.person)
            await stop_if_dropped(doors, step)
        look = look.model_copy(update={"wait_seconds": seconds_left(until)})
        await doors.reviewing.review(look, doors.session)
    except BatonError as error:
        return Outcome(Event.BROKEN, error.message, fields)
    review = ledger.review(review_id)
    if review.state in (ReviewState.PLANNED, ReviewState.RUNNING):
        return None
    if review.state not in (ReviewState.AWAITING_SYNTHESIS, ReviewState.FINALISED):
        return Outcome(
            Event.BROKEN, f"review {review_id} is {review.state.value}: {review.note or ''}", fields
        )
    unread = unread_seats(doors.house, review_id)
    detail = f"the findings of {', '.join(unread)} could not be read; the text is kept" if unread else None
    return Outcome(Event.REVIEWED, detail, fields)
