"""What the doors call: start a workflow, have it go on, record, look, replan and cancel."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from baton.consult.service import ConsultService
from baton.contract.argument_names import renamed
from baton.contract.errors import BatonError, InvalidInput, WrongState
from baton.contract.session import Session
from baton.contract.workflow import Executor, Step, StepState, WorkflowAction, WorkflowCall, WorkflowPart
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.engine.paging import entries_window, text_window
from baton.engine.service import Service
from baton.ledger.workflow_records import WorkflowStepRecord
from baton.review.confirm import Person, nobody
from baton.review.service import ReviewService
from baton.workflow.arguments import check_arguments, material_of, refuse_unsent
from baton.workflow.doors import Doors, ground_of, workflow_lock
from baton.workflow.ending import cancel, forget
from baton.workflow.history import Job
from baton.workflow.landing import begin_landing, land, no_longer_applies
from baton.workflow.machine import Event
from baton.workflow.outcome import Outcome, add_finished, finish
from baton.workflow.present import present, step_entry, summary
from baton.workflow.preview import check_token, preview
from baton.workflow.record import record
from baton.workflow.replan import replan
from baton.workflow.review_preview import Moved
from baton.workflow.start import policy_for, start
from baton.workflow.tests_run import await_tests, begin_tests
from baton.workflow.words import TOOL, Words
from baton.workflow.work import begin, settle

LOCK_SECONDS = 2.0


class WorkflowService:
    """A session's door to workflows."""

    def __init__(
        self,
        consulting: ConsultService,
        reviewing: ReviewService,
        engine: Service,
        words: Words = TOOL,
    ) -> None:
        """`words`: how answers name what can be done next."""
        self._consulting = consulting
        self._reviewing = reviewing
        self._engine = engine
        self._house: House = consulting.house
        self._words = words

    async def workflow(self, call: WorkflowCall, session: Session, person: Person = nobody) -> dict[str, Any]:
        """Do one action. Raises `BatonError`; what was done before it stays."""
        try:
            return await self._workflow(call, session, person)
        except InvalidInput as fault:
            raise renamed(fault, self._words.arguments, "workflow") from None

    async def _workflow(self, call: WorkflowCall, session: Session, person: Person) -> dict[str, Any]:
        check_arguments(call, self._words)
        doors = Doors(self._consulting, self._reviewing, self._engine, session, person, self._words)
        if call.action is WorkflowAction.START:
            return await self._start(doors, call)
        if call.id is None:
            raise InvalidInput(f"id: {call.action.value} needs the id of a workflow")
        job = await blocking(Job.read, self._house, call.id)
        if call.action is WorkflowAction.STATUS:
            return await blocking(self._status, doors, job, call)
        if call.action is WorkflowAction.CANCEL:
            await cancel(doors, job)
            return await blocking(lambda: present(doors, Job.read(self._house, job.id), 0, None))
        self._check_switched_on(job)
        last = max((one.number for one in job.steps if one.state.at_rest), default=0)
        match call.action:
            case WorkflowAction.NEXT:
                return await self._locked(job.id, lambda: self._go(doors, job.id, last, call))
            case WorkflowAction.RECORD:
                return await self._locked(job.id, lambda: self._record(doors, job.id, last, call))
        return await self._locked(job.id, lambda: self._replan(doors, job.id, last, call))

    async def _start(self, doors: Doors, call: WorkflowCall) -> dict[str, Any]:
        job = await start(doors, call)
        try:
            return await self._locked(job.id, lambda: self._go(doors, job.id, 0, call))
        except BatonError:
            # Its first step cannot be shown: nothing was sent, and nobody knows its id.
            await blocking(forget, self._house, job)
            raise

    def _check_switched_on(self, job: Job) -> None:
        workspace = Path(job.workflow.workspace)
        policy_for(self._house, workspace if workspace.is_dir() else None)

    async def _locked(self, workflow_id: str, do: Any) -> dict[str, Any]:
        lock = workflow_lock(self._house, workflow_id)
        try:
            lock.acquire(timeout=LOCK_SECONDS)
        except BatonError:
            raise WrongState(
                f"workflow {workflow_id} is moved by another call just now; {self._words.look(workflow_id)}"
            ) from None
        try:
            result: dict[str, Any] = await do()
            return result
        finally:
            lock.release()

    async def _record(self, doors: Doors, workflow_id: str, last: int, call: WorkflowCall) -> dict[str, Any]:
        job = await blocking(Job.read, self._house, workflow_id)
        await record(doors, job, call)
        return await self._go(doors, workflow_id, last, call.model_copy(update={"confirm": None}))

    async def _replan(self, doors: Doors, workflow_id: str, last: int, call: WorkflowCall) -> dict[str, Any]:
        job = await blocking(Job.read, self._house, workflow_id)
        shown = await replan(doors, job, call)
        if shown is not None:
            return shown
        return await self._go(doors, workflow_id, last, call.model_copy(update={"confirm": None}))

    async def _go(self, doors: Doors, workflow_id: str, last: int, call: WorkflowCall) -> dict[str, Any]:
        """Take in what came, do what sends nothing, and stop at what needs the session or its consent."""
        until = time.monotonic() + call.wait_seconds
        token = call.confirm
        due_first: Step | None = None
        while True:
            job = await blocking(Job.read, self._house, workflow_id)
            due = job.workflow.state.step
            if due_first is None and not _skipped(job, due):
                executor = Executor.HOST if due is None else job.terms.bindings[due].executor
                state = job.workflow.state.value
                refuse_unsent(call, state, due, executor, job.running is not None)
                due_first = due
            if job.running is not None:
                if not await self._take_in(doors, job, job.running, until):
                    break
                continue
            if due is None:
                break
            executor = job.terms.bindings[due].executor
            if executor is Executor.HOST:
                if due is Step.APPLY and call.action is WorkflowAction.NEXT:
                    stale = await blocking(no_longer_applies, doors, job)
                    if stale is not None:
                        await blocking(add_finished, self._house, job.workflow, *stale)
                        continue
                break
            if executor is Executor.SKIP:
                step = WorkflowStepRecord(
                    workflow_id=job.id, step=due, binding=job.terms.bindings[due].wire()
                )
                await blocking(add_finished, self._house, job.workflow, step, Outcome(Event.SKIPPED))
                continue
            if executor is Executor.BATON:
                if _tried(job, due, last):
                    # It failed within this call: trying again at once would change nothing.
                    break
                await blocking(begin_tests, self._house, job) if due is Step.TEST else await blocking(
                    begin_landing, doors, job
                )
                continue
            if token is not None:
                agreed = check_token(job.preview, token, due)
                token = None
                await begin(doors, job, agreed)
                continue
            meant = due is due_first and call.action is not WorkflowAction.RECORD
            given = call if meant else _without_material(call)
            try:
                seen = await preview(doors, job, given)
            except Moved:
                continue
            job = await blocking(Job.read, self._house, workflow_id)
            shown = await blocking(present, doors, job, last, seen)
            return shown if meant else _with_unsent(shown, call)
        job = await blocking(Job.read, self._house, workflow_id)
        return _with_unsent(await blocking(present, doors, job, last, None), call)

    async def _take_in(self, doors: Doors, job: Job, step: WorkflowStepRecord, until: float) -> bool:
        """Whether a running step has ended and was taken in."""
        bound = job.terms.bindings[step.step].executor
        if step.step is Step.TEST and bound is Executor.BATON:
            outcome = await await_tests(self._house, job, step, until)
        elif step.step is Step.APPLY:
            outcome = await land(doors, job, step, until)
        else:
            outcome = await settle(doors, job, step, until)
        if outcome is None:
            return False
        try:
            await blocking(finish, self._house, job.workflow, step, outcome)
        except WrongState:
            # Cancelled while it was waited for: there is nothing left to take in.
            if not self._house.ledger.workflow(job.id).state.ended:
                raise
        return True

    def _status(self, doors: Doors, job: Job, call: WorkflowCall) -> dict[str, Any]:
        if call.what is WorkflowPart.SUMMARY:
            return summary(doors, job)
        known = {"workflowId": job.id, "state": job.workflow.state.value, "what": call.what.value}
        if call.what is WorkflowPart.STEPS:
            return known | entries_window(
                "steps", [step_entry(one) for one in job.steps], call.offset, call.limit
            )
        return known | text_window(self._text(doors, job, call), call.offset, call.limit)

    def _text(self, doors: Doors, job: Job, call: WorkflowCall) -> str:
        if call.what is WorkflowPart.DIFF:
            return ground_of(self._house, job.workflow).diff(job.workflow.base, job.ground)
        wanted = [one for one in job.steps if call.step in (None, one.step)]
        for step in reversed(wanted):
            found = self._part(doors, job, step, call.what)
            if found is not None:
                return found
        which = f" of {call.step.value}" if call.step else ""
        raise InvalidInput(f"what: there is no {call.what.value}{which} yet")

    def _part(self, doors: Doors, job: Job, step: WorkflowStepRecord, what: WorkflowPart) -> str | None:
        match what:
            case WorkflowPart.PRODUCT:
                return step.product
            case WorkflowPart.OUTPUT:
                return step.output
            case WorkflowPart.PATCH:
                if step.base is None or step.result is None or step.step not in (Step.IMPLEMENT, Step.FIX):
                    return None
                return ground_of(self._house, job.workflow).diff(step.base, step.result)
        call = step.request.get("call") or step.request.get("task")
        if not isinstance(call, dict):
            return None
        texts = [call.get(name) for name in ("question", "objective", "goal", "context")]
        return "\n\n".join(str(text) for text in texts if text)


def _skipped(job: Job, due: Step | None) -> bool:
    return due is not None and job.terms.bindings[due].executor is Executor.SKIP


def _with_unsent(shown: dict[str, Any], call: WorkflowCall) -> dict[str, Any]:
    """The answer, with what of the call went nowhere because another step came first."""
    given = material_of(call)
    if not given:
        return shown
    unsent = f"{', '.join(given)}: not sent, for another step came first; give it again"
    return {**shown, "note": f"{shown['note']}; {unsent}" if shown.get("note") else unsent}


def _without_material(call: WorkflowCall) -> WorkflowCall:
    return call.model_copy(update={"context": None, "context_paths": [], "own_findings": None})


def _tried(job: Job, due: Step, last: int) -> bool:
    return any(one.number > last and one.step is due and one.state is StepState.FAILED for one in job.steps)
