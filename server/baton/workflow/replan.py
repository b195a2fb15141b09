"""Changes the terms of a workflow, or goes back to a step, after a confirmation of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from baton.contract.errors import InvalidInput, WrongState
from baton.contract.wording import many
from baton.contract.workflow import StepState, WorkflowCall
from baton.engine.blocking import blocking
from baton.review.confirm import approval_of, bound, fits, new_token
from baton.workflow.doors import Doors
from baton.workflow.history import Job
from baton.workflow.machine import Position, advance, back_to, transition
from baton.workflow.start import policy_for
from baton.workflow.terms import Bound, Resolver, Terms, check_binding


async def replan(doors: Doors, job: Job, call: WorkflowCall) -> dict[str, Any] | None:
    """Show what would change with a token, or with the token do it and answer None.

    Only the steps that are named are decided anew, under the policy as it is now; all others stay as they
    are. Raises `BatonError` when it cannot be done.
    """
    workflow = job.workflow
    if workflow.state.ended:
        raise WrongState(f"workflow {job.id} is {workflow.state.value}: there is nothing to replan")
    if job.running is not None:
        raise WrongState(f"the {job.running.step.value} step is at work; {doors.words.wait(job.id)}")
    if not (call.bindings or call.step or call.more_rounds):
        further = doors.words.argument("moreRounds")
        raise InvalidInput(f"replan: name bindings to change, a step to go back to, or {further}")
    terms = await _terms(doors, job, call)
    after = Position(workflow.state, workflow.round)
    if call.step is not None:
        event = back_to(call.step)
        if event is None:
            raise InvalidInput(f"step: {call.step.value} follows from what is before it; go back to that")
        transition(workflow.state, event)
        after = advance(after, event)
        if after.round > terms.max_fix_rounds:
            raise InvalidInput(
                f"step: {many(terms.max_fix_rounds, 'fix round is', 'fix rounds are')} used;"
                f" give {doors.words.argument('moreRounds')} as well"
            )
    changed = {
        step.value: f"{job.terms.bindings[step].shown} -> {new.shown}"
        for step, new in terms.bindings.items()
        if new != job.terms.bindings[step]
    }
    would: dict[str, Any] = {
        "bindings": changed,
        "state": after.state.value,
        "rounds": f"{after.round} of {terms.max_fix_rounds}",
    }
    if (terms.max_cost, terms.max_turns) != (job.terms.max_cost, job.terms.max_turns):
        would["ceilings"] = {"costUsd": terms.max_cost, "turns": terms.max_turns}
    approval = approval_of({"replan": job.id, "from": workflow.state.value, "at": len(job.steps), **would})
    if call.confirm is None:
        token = new_token()
        await blocking(
            doors.house.ledger.move_workflow, job.id, workflow.state, replan_token=bound(token, approval)
        )
        return {
            "workflowId": job.id,
            "state": workflow.state.value,
            "would": would,
            "confirm": token,
            "next": "nothing was changed; when the person agrees, replan again with confirm",
        }
    if not fits(call.confirm, approval, workflow.replan_token):
        raise InvalidInput("confirm: not the token of this replan as it was shown; show it again without")
    await blocking(_change, doors, job, terms, after)
    return None


async def _terms(doors: Doors, job: Job, call: WorkflowCall) -> Terms:
    rounds = job.terms.max_fix_rounds + call.more_rounds
    if not call.bindings:
        return job.terms.model_copy(update={"max_fix_rounds": rounds})
    policy = policy_for(doors.house, Path(job.workflow.workspace))
    for step, text in call.bindings.items():
        check_binding(policy, step, text)
    kept: dict[Any, Bound] = {
        step: one for step, one in job.terms.bindings.items() if step not in call.bindings
    }
    resolver = Resolver(
        doors.consulting, doors.engine, policy, doors.session, job.workflow.workspace, job.terms
    )
    made = await resolver.resolve(call.bindings, job.terms.allowed_files, kept)
    spend = policy.workflow.spend
    return job.terms.model_copy(
        update={
            "bindings": made,
            "max_fix_rounds": rounds,
            "max_cost": spend.max_cost_per_workflow,
            "max_turns": spend.max_turns_per_workflow,
        }
    )


def _change(doors: Doors, job: Job, terms: Terms, after: Position) -> None:
    ledger = doors.house.ledger
    with ledger.transaction():
        for one in ledger.workflow_steps(job.id, states=[StepState.PREVIEWED]):
            ledger.change_workflow_step(job.id, one.number, state=StepState.DROPPED, token=None)
        ledger.move_workflow(
            job.id,
            job.workflow.state,
            terms=terms.wire(compact=False),
            replan_token=None,
            state=after.state,
            round=after.round,
            note="replanned",
        )
