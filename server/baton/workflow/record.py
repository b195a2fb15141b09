"""Takes down what the session did itself, checked against the repository where it can be."""

from __future__ import annotations

from baton.consult.agents import host_of
from baton.consult.outgoing import is_code, prose
from baton.contract.errors import BatonError, InvalidInput, WrongState
from baton.contract.workflow import (
    Executor,
    ReportedBy,
    Step,
    TestReport,
    TestRun,
    WorkflowCall,
    WorkflowState,
    outcome_of,
    overall,
)
from baton.engine.blocking import blocking
from baton.ledger.workflow_records import WorkflowStepRecord
from baton.policy.load import load_policy
from baton.workflow.doors import Doors, ground_of
from baton.workflow.history import Job
from baton.workflow.landing import applied_by_host, made_by_host
from baton.workflow.machine import Event
from baton.workflow.outcome import Outcome, add_finished
from baton.workflow.synthesis import finalise
from baton.workflow.terms import HOST, Bound, Party
from baton.workflow.tests_run import report_outcome

MOST_OUTPUT = 64 * 1024
"""Characters of the output in a session's own report that are kept; the end of it."""

_TEXTS = (Step.RESEARCH, Step.PLAN, Step.BRIEF)


async def record(doors: Doors, job: Job, call: WorkflowCall) -> Outcome:
    """Record the step that is due. Raises `BatonError` with what is missing or does not hold."""
    due = job.workflow.state.step
    if due is None:
        raise WrongState(f"workflow {job.id} is {job.workflow.state.value}: no step is due")
    if call.step is None:
        raise InvalidInput(f"step: record needs the step; {due.value} is due")
    if call.step is not due:
        raise WrongState(f"step: {call.step.value} is not due; {due.value} is")
    if job.running is not None:
        raise WrongState(f"the {job.running.step.value} step is at work; {doors.words.wait(job.id)}")
    bound = job.terms.bindings[due]
    rejects = due is Step.APPLY and call.reject is not None
    if bound.executor is not Executor.HOST and not rejects:
        raise WrongState(
            f"{due.value} is bound to {bound.shown}, not to the session; {doors.words.take_over(job.id, due)}"
        )
    outcome = await _outcome(doors, job, due, call)
    step = WorkflowStepRecord(
        workflow_id=job.id,
        step=due,
        round=job.workflow.round,
        binding=_done_by(doors, bound).wire(),
    )
    await blocking(add_finished, doors.house, job.workflow, step, outcome)
    return outcome


def _done_by(doors: Doors, bound: Bound) -> Bound:
    """The binding with the model of the session that records, which need not be the one that started."""
    rules = load_policy(doors.house.codex_home, None).consult
    host = host_of(doors.house.env, rules, doors.session)
    known = {party.identity for party in bound.parties}
    here = [Party(name=HOST, runtime=host.runtime, model=model) for model in host.models]
    more = [party for party in here if party.identity not in known]
    return bound.model_copy(update={"parties": [*bound.parties, *more]})


async def _outcome(doors: Doors, job: Job, due: Step, call: WorkflowCall) -> Outcome:
    if due in _TEXTS:
        if call.text is None:
            raise InvalidInput(f"text: the {due.value} itself is needed")
        return Outcome(Event.DONE, None, {"product": clean(call.text)})
    match due:
        case Step.IMPLEMENT | Step.FIX:
            made = await blocking(made_by_host, doors, job, call.commit)
            return Outcome(made.event, made.detail, {**made.fields, "product": clean(call.text)})
        case Step.APPLY:
            if call.reject is not None:
                return Outcome(Event.REJECTED, f"rejected: {clean(call.reject)}"[:400])
            return await blocking(applied_by_host, doors, job, call.commit)
        case Step.TEST:
            return await blocking(_report, doors, job, call)
    if not call.dispositions and call.text is None:
        raise InvalidInput("text: say what you conclude, with a disposition for each serious finding")
    conclusion = clean(call.text)
    fields: dict[str, object] = {"product": conclusion}
    return await finalise(doors, job, call.dispositions, conclusion, call.own_findings, fields)


def _report(doors: Doors, job: Job, call: WorkflowCall) -> Outcome:
    """A report of the session's own: attested by it, and bound to the workspace as it is now."""
    given = call.report
    if given is None:
        raise InvalidInput("report: the command, its exit status and its output are needed")
    ground = ground_of(doors.house, job.workflow)
    now = ground.snapshot(f"tested-{len(job.steps) + 1}")
    outcome = outcome_of(given.exit_code)
    run = TestRun(
        command=given.command,
        outcome=outcome,
        exit_code=given.exit_code,
        seconds=given.seconds,
        tail=given.output[-2_000:],
    )
    report = TestReport(
        outcome=overall([outcome]),
        reported_by=ReportedBy.HOST,
        tree=now.tree,
        head=now.head,
        runs=[run],
    )
    told = report_outcome(job, report)
    fields: dict[str, object] = {
        "report": report,
        "output": given.output[-MOST_OUTPUT:],
        "base": now.commit,
        "result": now.commit,
        "tree": now.tree,
    }
    return Outcome(told.event, told.detail, fields)


def clean(text: str | None) -> str | None:
    """A text as it is kept: prose without credentials; code as it is."""
    if text is None or is_code(text):
        return text
    return prose(text)[0]


def needs(doors: Doors, job: Job) -> str:
    """What the session has to do now for the step that is its own, in one line."""
    due, words = job.workflow.state.step, doors.words
    if due is not None and (executor := job.terms.bindings[due].executor) is not Executor.HOST:
        delegated = executor.delegated or executor is Executor.SKIP
        return words.show(job.id, due) if delegated else words.again(job.id, due)
    match due:
        case Step.RESEARCH | Step.PLAN | Step.BRIEF:
            return words.record(job.id, due)
        case Step.IMPLEMENT | Step.FIX:
            what = "the plan" if due is Step.IMPLEMENT else "what is open"
            return f"do {what} in the workspace, then {words.record(job.id, due)}"
        case Step.APPLY:
            try:
                command = fetch(doors, job)
            except BatonError as error:
                return f"{error.message}; bring it back, or {words.cancel(job.id)}"
            return (
                f"apply it and commit: {command} && git cherry-pick FETCH_HEAD; then"
                f" {words.record(job.id, due)}"
            )
        case Step.TEST:
            return f"run the tests, then {words.record(job.id, due)}"
        case Step.SYNTHESISE:
            return f"check each finding yourself, then {words.record(job.id, due)}"
    if job.workflow.state is WorkflowState.NEEDS_ATTENTION:
        return words.attention(job.id)
    return "nothing: it is over"


def fetch(doors: Doors, job: Job) -> str:
    """The git command that gets what was made last."""
    made = job.made
    assert made is not None
    ground = ground_of(doors.house, job.workflow)
    return ground.repo.fetch_command(ground.ref(made.number))
