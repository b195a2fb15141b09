"""Isolated jobs as runs of the engine: a worktree of their own, verified, and merged like a batch."""

from __future__ import annotations

import math

import anyio

from baton.codex.failures import MAX_MESSAGE
from baton.contract.calls import ControlAction, ControlCall, WaitCall
from baton.contract.errors import BatonError, InvalidInput
from baton.contract.evidence import TurnFailure
from baton.contract.session import Session
from baton.contract.states import ChangeIntent, FailureClass, Integration, RunState, TaskState, Verdict
from baton.contract.task import TaskCall
from baton.engine.service import Service
from baton.ledger.records import RunRecord
from baton.policy.tiers import resolve_tier
from baton.pool.backend import Assignment, AttemptOutcome
from baton.pool.context import PoolContext

TASK_ID = "job"

WAIT_SECONDS = 280

END_SECONDS = 60.0
"""How long a run that nobody waits for any more has to come to rest."""

LANDED = (Integration.APPLIED, Integration.NOTHING)


class IsolatedBackend:
    """See `Backend`. A job has succeeded when its run is verified and its result is in the workspace."""

    name = "run"
    jitter_seconds = 0.2
    warms_up = False

    def __init__(self, ctx: PoolContext) -> None:
        self._ctx = ctx
        self._service = Service(ctx.house)

    async def start(self) -> None:
        """Nothing is needed before a run."""

    async def run(self, assignment: Assignment) -> AttemptOutcome:
        """Carry out one attempt as a run, or go on with the run of one that was cut."""
        try:
            run_id = assignment.run_id or await self._begin(assignment)
        except BatonError as refused:
            failure = TurnFailure(failure_class=FailureClass.BAD_REQUEST, message=refused.message)
            return AttemptOutcome(began=False, failure=failure)
        assignment.on_run(run_id)
        assignment.on_answer()
        try:
            if assignment.run_id is not None:
                await self._resume(run_id)
            halted = await self._wait(assignment, run_id)
        except BatonError as refused:
            failure = TurnFailure(failure_class=FailureClass.OTHER, message=refused.message)
            return AttemptOutcome(run_id=run_id, failure=failure)
        return self._outcome(run_id, halted=halted, resumed=assignment.run_id is not None)

    async def close(self) -> None:
        """Give up the runs: those that are at work stop and are kept."""
        self._service.ownership.close()

    async def _begin(self, assignment: Assignment) -> str:
        job = assignment.job
        call = TaskCall(
            id=TASK_ID,
            objective=job.prompt,
            allowed_files=list(job.scope),
            change_intent=ChangeIntent.OPTIONAL,
            tier=await self._tier(assignment),
            effort=job.route.effort,
            verification_commands=[
                one if isinstance(one, str) else list(one) for one in job.verification_commands
            ],
            timeout_seconds=max(1, min(86_400, math.ceil(assignment.deadlines.turn))),
            label=job.id[:120],
            workspace=str(job.workdir),
            wait_seconds=0,
        )
        shown = await self._service.delegate_task(call, Session())
        return str(shown["runId"])

    async def _tier(self, assignment: Assignment) -> str:
        """The tier that means the job's model: a task names no model. Raises `InvalidInput`."""
        job = assignment.job
        if job.route.tier is not None:
            return job.route.tier
        policy = self._ctx.policy(job.workdir)
        entries = await self._ctx.machine.catalogue(self._ctx.house)
        for tier in policy.tiers:
            try:
                if resolve_tier(policy, tier, entries).slug == job.route.model:
                    return tier
            except InvalidInput:
                continue
        raise InvalidInput(
            f"job {job.id}: no tier of the policy means {job.route.model}, and an isolated job runs on a"
            " tier: name one instead of the model"
        )

    async def _resume(self, run_id: str) -> None:
        run = self._record(run_id)
        if run.state is RunState.INTERRUPTED:
            await self._service.control_run(
                ControlCall(run_id=run_id, action=ControlAction.RESUME), Session()
            )

    async def _wait(self, assignment: Assignment, run_id: str) -> bool:
        """Wait for the end of the run; whether it was told to end early."""
        halted = False
        async with anyio.create_task_group() as tasks:

            async def end_on_halt() -> None:
                nonlocal halted
                await assignment.halt.wait()
                halted = True
                tasks.cancel_scope.cancel()

            tasks.start_soon(end_on_halt)
            while not self._record(run_id).state.at_rest:
                await self._service.wait_run(WaitCall(run_id=run_id, wait_seconds=WAIT_SECONDS), Session())
            tasks.cancel_scope.cancel()
        if halted:
            self._service.ownership.drop(run_id)
            ledger = self._ctx.house.ledger
            version = ledger.data_version()
            with anyio.move_on_after(END_SECONDS):
                while not self._record(run_id).state.at_rest:
                    version = await ledger.changed(version, 1.0)
        return halted

    def _record(self, run_id: str) -> RunRecord:
        return self._ctx.house.ledger.run(run_id)

    def _outcome(self, run_id: str, *, halted: bool, resumed: bool) -> AttemptOutcome:
        house = self._ctx.house
        run, task = house.ledger.run(run_id), house.ledger.task(run_id, TASK_ID)
        result = task.result
        verified = task.verdict is Verdict.VERIFIED and task.outcome.integration in LANDED
        failure = result.evidence.turn_failure if result is not None and not verified else None
        refusal: str | None = None
        if not verified and failure is None:
            if task.state is TaskState.INTERRUPTED or run.state is RunState.INTERRUPTED:
                why = "; ".join(task.reasons) or run.note or "its run was cut"
                failure = TurnFailure(failure_class=FailureClass.CRASH, message=why)
            else:
                told = [task.verdict.value if task.verdict else task.state.value, *task.reasons]
                if task.outcome.integration is not None:
                    told.append(f"result {task.outcome.integration.value}")
                told += [text for text in (task.outcome.detail, run.note) if text]
                refusal = f"{': '.join(told)} (run {run_id})"[:MAX_MESSAGE]
        message = None
        for ref in house.ledger.artifact_refs(run_id, TASK_ID):
            if ref.name == "report":
                message = house.artifacts.read(ref.artifact).decode("utf-8", "replace")
        return AttemptOutcome(
            completed=verified,
            interrupted=halted and not verified,
            resumed=resumed,
            message=message,
            thread_id=None if result is None else result.thread_id,
            run_id=run_id,
            usage=AttemptOutcome().usage if result is None else result.usage,
            failure=failure,
            refusal=refusal,
            route=None if result is None else result.route,
            attested=result is not None and result.route is not None and result.route.model is not None,
            notices=() if result is None else tuple(result.evidence.notices),
        )
