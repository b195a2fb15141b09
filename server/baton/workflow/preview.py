"""Shows what a delegated step would send, and to whom; nothing is sent. The token given out stands for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from baton.consult import spend
from baton.consult.context_material import Piece
from baton.consult.outgoing import Sightings, is_code, look_through, prose, refuse_secrets
from baton.consult.plan import Plan, candidates_of, make_plan
from baton.contract.consult import ConsultCall
from baton.contract.errors import NoAgent, WrongState
from baton.contract.task import BatchCall, ContextCapsule, IntegrateMode, Task
from baton.contract.workflow import CAPABILITIES, Executor, Step, StepState, WorkflowCall
from baton.engine.blocking import blocking
from baton.ledger.workflow_records import WorkflowStepRecord
from baton.policy.load import load_policy
from baton.review.confirm import approval_of, bound, fits, new_token
from baton.review.present import finding_shown
from baton.workflow.doors import Doors, ground_of
from baton.workflow.history import Job, check_ceilings, findings_of, open_findings, used
from baton.workflow.prompt import answer_schema, payload_text, question
from baton.workflow.review_preview import review_preview
from baton.workflow.terms import Bound, check_unchanged

MOST_TAIL = 4_000
MOST_PLACES = 10


async def preview(doors: Doors, job: Job, call: WorkflowCall) -> dict[str, Any]:
    """Record what would be sent, and show it with its token.

    Raises `BatonError` for what cannot be sent, with why, and `Moved`.
    """
    due = job.workflow.state.step
    assert due is not None
    who = job.terms.bindings[due]
    check_ceilings(doors.house, job, max(len(who.parties), 1))
    if due is Step.REVIEW:
        request, shown = await review_preview(doors, job, call, who)
    elif who.executor is Executor.ISOLATED:
        request, shown = await _isolated(doors, job, call, who)
    else:
        request, shown = await _asked(doors, job, call, due, who)
    token, approval = new_token(), approval_of({"step": due.value, **_fixed(request)})
    snapshot = None
    if who.executor is Executor.PATCH:
        snapshot = await blocking(lambda: ground_of(doors.house, job.workflow).snapshot())
    step = WorkflowStepRecord(
        workflow_id=job.id,
        step=due,
        round=job.workflow.round,
        binding=who.wire(),
        state=StepState.PREVIEWED,
        request=request if snapshot is None else {**request, "head": snapshot.head},
        approval=approval,
        token=bound(token, approval),
        review_id=request.get("review"),
        base=request.get("base") or (None if snapshot is None else snapshot.commit),
    )
    added = await blocking(doors.house.ledger.add_workflow_step, step)
    if snapshot is not None:
        ground = ground_of(doors.house, job.workflow)
        await blocking(ground.keep, f"base-{added.number}", snapshot.commit)
    return {"step": due.value, "by": who.shown, **shown, "confirm": token}


def _fixed(request: dict[str, Any]) -> dict[str, Any]:
    """What of a request the approval stands for: all but the review's own token."""
    return {name: value for name, value in request.items() if name != "token"}


# -- a question to an agent ---------------------------------------------------------------------------


async def _asked(
    doors: Doors, job: Job, call: WorkflowCall, due: Step, who: Bound
) -> tuple[dict[str, Any], dict[str, Any]]:
    payload, masked = _payload(doors, job, call, due)
    asking = ConsultCall(
        question=question(due, who.executor),
        capability=CAPABILITIES[due],
        targets=[who.parties[0].name],
        context=payload_text(payload),
        context_paths=_paths(job, call),
        answer_schema=answer_schema(due, who.executor),
        workspace=job.workflow.workspace,
        # What it holds is shown with the step, whose token stands for it.
        send_secrets=True,
    )
    plan, sent = await planned(doors, asking, who)
    _refuse_secrets(doors, job, plan.seen)
    masked = [*masked, *plan.masked]
    turn = plan.turns[0].record
    ledger = doors.house.ledger
    earlier = ledger.answered_consult_turns(turn.agent, turn.asked_model, spend.BASIS_TURNS)
    guess = spend.estimate(earlier, turn.prompt_bytes)
    shown: dict[str, Any] = {
        "sends": {"promptBytes": turn.prompt_bytes, "sees": turn.sees},
        "estimate": {
            "costUsd": guess.cost,
            "seconds": guess.seconds,
            "outputTokens": guess.output_tokens,
            "basisTurns": guess.basis_turns,
        },
    }
    if asking.context_paths:
        shown["sends"]["files"] = [piece.label for piece in turn.material if piece.label != "context"][:20]
    return {"call": asking.wire(), "sent": sent}, shown | _warnings(doors, job, guess.cost, plan.seen, masked)


async def planned(doors: Doors, asking: ConsultCall, who: Bound) -> tuple[Plan, dict[str, Any]]:
    """The plan of a question, and what it sends to whom, by hash.

    Raises `NoAgent` when the agent is no longer the one that the workflow was bound to.
    """
    consulting = doors.consulting
    plan = await make_plan(doors.house, asking, doors.session, consulting.look, consulting.adapter_of)
    check_unchanged(candidates_of(plan.rules, consulting.adapter_of), who)
    turn = plan.turns[0].record
    sent = {
        "agent": turn.agent,
        "runtime": turn.runtime,
        "model": turn.asked_model,
        "material": [[piece.label, piece.sha256] for piece in turn.material],
        "sees": turn.sees,
    }
    return plan, sent


def _payload(doors: Doors, job: Job, call: WorkflowCall, due: Step) -> tuple[dict[str, Any], list[str]]:
    material, masked = _clean(call.context)
    payload: dict[str, Any] = {
        "goal": job.workflow.goal,
        "scope": job.terms.allowed_files,
        "research": job.product(Step.RESEARCH),
        "plan": job.product(Step.PLAN) if due is not Step.PLAN else None,
        "brief": job.product(Step.BRIEF) if due in (Step.IMPLEMENT, Step.FIX) else None,
        "lastTry": job.refusal if due in (Step.IMPLEMENT, Step.FIX) else None,
        "material": material,
    }
    if due is Step.FIX:
        payload["openFindings"] = open_findings(doors.house, job) if job.last_is_review else []
        payload["failedTests"] = _failures(job)
    if due is Step.SYNTHESISE:
        found = findings_of(doors.house, job)
        payload["findings"] = [finding_shown(one, detail=True, most=4_000) for one in found]
    return payload, masked


def _failures(job: Job) -> list[dict[str, Any]]:
    report = job.report
    if report is None:
        return []
    return [
        {
            "command": run.command,
            "exitCode": run.exit_code,
            "detail": run.detail,
            "tail": run.tail[-MOST_TAIL:],
        }
        for run in report.runs
        if run.outcome.value != "passed"
    ]


def _clean(text: str | None) -> tuple[str | None, list[str]]:
    """Prose without credentials. Code is never changed: what it holds is shown before it is sent."""
    if text is None or is_code(text):
        return text, []
    return prose(text)


def _paths(job: Job, call: WorkflowCall) -> list[str]:
    return list(dict.fromkeys([*job.terms.context_paths, *call.context_paths]))


def _refuse_secrets(doors: Doors, job: Job, seen: Sightings) -> None:
    workspace = Path(job.workflow.workspace)
    if load_policy(doors.house.codex_home, workspace).review.secrets == "refuse":
        refuse_secrets(seen.secrets, "review.secrets = refuse")


def _warnings(
    doors: Doors,
    job: Job,
    cost: float | None,
    seen: Sightings,
    masked: Sequence[str],
) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    secrets, suspects = ([one.place for one in found] for found in (seen.secrets, seen.suspects))
    for name, places in (("secrets", secrets), ("suspects", suspects), ("masked", masked)):
        if places:
            more = [f"and {len(places) - MOST_PLACES} more"] if len(places) > MOST_PLACES else []
            shown[name] = [*places[:MOST_PLACES], *more]
    most = job.terms.max_cost
    if most and cost is not None and used(doors.house, job).cost + cost >= most:
        shown["ceilingWarning"] = f"this may reach the {most:.2f} US dollars of the workflow"
    return shown


# -- an isolated worker -------------------------------------------------------------------------------


async def _isolated(
    doors: Doors, job: Job, call: WorkflowCall, who: Bound
) -> tuple[dict[str, Any], dict[str, Any]]:
    due = job.workflow.state.step
    assert due is not None
    payload, masked = _payload(doors, job, call, due)
    payload |= await blocking(_file_texts, doors, job, call)
    task = Task(
        objective=question(due, Executor.ISOLATED),
        allowed_files=job.terms.allowed_files,
        role=who.role,
        context_capsule=ContextCapsule(relevant_context=[payload_text(payload)]),
        id=due.value,
    )
    batch = BatchCall(
        tasks=[task],
        workspace=job.workflow.workspace,
        integrate=IntegrateMode.HOLD,
        background=True,
        dry_run=True,
    )
    (would,) = (await doors.engine.delegate_tasks(batch, doors.session))["tasks"]
    if would["model"] != who.parties[0].model:
        raise NoAgent(
            f"the role {who.role} is {would['model']} now, and this workflow was bound to"
            f" {who.parties[0].model}; replan the step"
        )
    shown = {
        "scope": job.terms.allowed_files,
        "worker": f"{would['model']} {would.get('effort') or ''}".strip(),
    }
    texts = [Piece(name, value) for name, value in payload.items() if isinstance(value, str)]
    seen = look_through(texts)
    _refuse_secrets(doors, job, seen)
    return {"task": task.wire()}, shown | _warnings(doors, job, None, seen, masked)


def _file_texts(doors: Doors, job: Job, call: WorkflowCall) -> dict[str, Any]:
    """A worker reads the files itself; they are only named."""
    paths = _paths(job, call)
    return {"lookAt": paths} if paths else {}


def check_token(step: WorkflowStepRecord | None, token: str, due: Step) -> WorkflowStepRecord:
    """The step that a token stands for. Raises `WrongState` when it is not the one that was shown last."""
    if step is None or step.step is not due or not fits(token, step.approval, step.token):
        raise WrongState(
            f"confirm: not the token of the {due.value} step that was shown last; nothing was sent; call next"
            " without it to see the step"
        )
    return step
