"""The process in which Baton runs a workflow's tests, on a clean checkout of the workspace as it was.

It holds a lock for life and outlives the session that asked. What it finds is written with the step; whoever
waits for it reads it there. Killed before it is done, it is started again.
"""

from __future__ import annotations

import sys
import time

import anyio

from baton.contract.errors import BatonError, StateUnavailable
from baton.contract.evidence import CheckResult, CheckStatus
from baton.contract.session import Session
from baton.contract.tree import Snapshot
from baton.contract.workflow import (
    ReportedBy,
    Step,
    StepState,
    TestOutcome,
    TestReport,
    TestRun,
    outcome_of,
    overall,
)
from baton.engine.blocking import blocking
from baton.engine.context import RunContext
from baton.engine.house import House
from baton.engine.machine import Machine, bounds_of
from baton.engine.plan import RunPlan
from baton.engine.spawn import spawn
from baton.engine.stop import Stop
from baton.engine.verification import run_checks
from baton.ledger.locks import FileLock
from baton.ledger.records import RunRecord
from baton.ledger.workflow_records import WorkflowRecord, WorkflowStepRecord
from baton.process.logs import set_up_logging
from baton.process.tree import become_subreaper, end_descendants
from baton.process.utf8 import go_on_in_utf8
from baton.runtime.use import hold_own_environment
from baton.workflow.doors import ground_of, tests_lock
from baton.workflow.ground import Ground
from baton.workflow.history import Job
from baton.workflow.machine import Event, after_tests
from baton.workflow.outcome import Outcome

LOOK_SECONDS = 0.5
"""How often a running test is held against the workflow, which may have been cancelled."""

MOST_OUTPUT = 256 * 1024
"""Bytes of the output of all tests that are kept with the step; the end of it."""


def begin_tests(house: House, job: Job) -> WorkflowStepRecord:
    """Take the workspace as it is and write down that it is tested."""
    ground = ground_of(house, job.workflow)
    now = ground.snapshot()
    step = WorkflowStepRecord(
        workflow_id=job.id,
        step=Step.TEST,
        round=job.workflow.round,
        binding=job.terms.bindings[Step.TEST].wire(),
        state=StepState.RUNNING,
        base=now.commit,
        result=now.commit,
        tree=now.tree,
    )
    added = house.ledger.add_workflow_step(step)
    ground.keep(f"tested-{added.number}", now.commit)
    return added


async def await_tests(house: House, job: Job, step: WorkflowStepRecord, until: float) -> Outcome | None:
    """What the tests say; None while they run. Starts them where nobody does."""
    ledger = house.ledger
    version = ledger.data_version()
    while True:
        known = ledger.workflow_step(job.id, step.number)
        if known.report is not None:
            return report_outcome(job, known.report)
        if known.state is not StepState.RUNNING:
            return None
        if known.detail is not None:
            return Outcome(Event.BROKEN, known.detail)
        lock = FileLock(tests_lock(house, job.id))
        if lock.try_acquire():
            # Read again: it may have ended just then.
            if ledger.workflow_step(job.id, step.number).report is None:
                await blocking(_start, house, job.workflow, step, lock)
            else:
                lock.release()
        left = until - time.monotonic()
        if left <= 0:
            return None
        version = await ledger.changed(version, min(left, 1.0))


def report_outcome(job: Job, report: TestReport) -> Outcome:
    """Where a report leads."""
    event = after_tests(
        report.outcome is TestOutcome.PASSED,
        report.outcome is TestOutcome.FAILED,
        job.terms.advance_on_failed_test,
        job.workflow.round,
        job.terms.max_fix_rounds,
    )
    bad = next((run for run in report.runs if run.outcome is not TestOutcome.PASSED), None)
    why = None
    if bad is not None:
        status = "no exit status" if bad.exit_code is None else f"exit status {bad.exit_code}"
        why = f"{bad.command}: {bad.detail or status}"
        if bad.outcome is TestOutcome.SKIPPED:
            why += "; that proves nothing"
    return Outcome(event, why)


def _start(house: House, workflow: WorkflowRecord, step: WorkflowStepRecord, lock: FileLock) -> None:
    output = house.state.root / "logs" / f"{workflow.workflow_id}.log"
    try:
        output.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        argv = [sys.executable, "-m", "baton.workflow.tests_run", step.workflow_id, str(step.number)]
        spawn(house, [*argv, str(lock.handle())], output, workflow.workflow_id, lock.handle())
    except OSError as error:
        raise StateUnavailable(f"the tests of {workflow.workflow_id} cannot be started: {error}") from None
    finally:
        lock.release()


def main() -> None:
    """Entry point: WORKFLOW STEP LOCK-HANDLE."""
    go_on_in_utf8()
    workflow_id, number, handle = sys.argv[1:]
    hold_own_environment()
    set_up_logging("info", "%(asctime)s %(levelname)s %(message)s")
    try:
        anyio.run(_main, workflow_id, int(number), int(handle))
    except BatonError as error:
        sys.stderr.write(f"baton.workflow.tests_run: {error.message}\n")
        raise SystemExit(1) from None


async def _main(workflow_id: str, number: int, handle: int) -> None:
    become_subreaper()
    with House.open() as house:
        lock = FileLock.adopt(tests_lock(house, workflow_id), handle)
        try:
            await _test(house, Job.read(house, workflow_id), number)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(end_descendants)
            lock.release()


async def _test(house: House, job: Job, number: int) -> None:
    step = house.ledger.workflow_step(job.id, number)
    if step.state is not StepState.RUNNING or step.report is not None:
        return
    results: list[CheckResult] | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_until_dropped, house, step, tasks.cancel_scope)
        try:
            results = await _results(house, job, step)
        except BatonError as error:
            house.ledger.change_workflow_step(job.id, number, StepState.RUNNING, detail=error.message)
        tasks.cancel_scope.cancel()
    if results is None:
        return
    runs = [_run(result) for result in results]
    report = TestReport(
        outcome=overall([run.outcome for run in runs]),
        reported_by=ReportedBy.BATON,
        tree=str(step.tree),
        head=await blocking(lambda: ground_of(house, job.workflow).head()),
        runs=runs,
    )
    output = "\n".join(f"$ {result.command}\n{_whole(house, result)}" for result in results)
    house.ledger.change_workflow_step(
        job.id, number, StepState.RUNNING, report=report, output=output[-MOST_OUTPUT:]
    )


async def _until_dropped(house: House, step: WorkflowStepRecord, work: anyio.CancelScope) -> None:
    """End the tests when nobody wants to know any more."""
    while house.ledger.workflow_step(step.workflow_id, step.number).state is StepState.RUNNING:
        await anyio.sleep(LOOK_SECONDS)
    work.cancel()


async def _results(house: House, job: Job, step: WorkflowStepRecord) -> list[CheckResult]:
    workflow = job.workflow
    session = Session.model_validate(workflow.session)
    ground: Ground = await blocking(ground_of, house, workflow)
    policy = house.policy(ground.site.workspace)
    scratch = house.state.scratch / f"{workflow.workflow_id}-{step.number}"
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    commit = str(step.base)
    tested = Snapshot(
        commit=commit,
        tree=str(step.tree),
        head=ground.site.head,
        submodules=await blocking(ground.repo.submodules, commit),
    )
    ctx = RunContext(
        house=house,
        # Only its names are used: there is no run, and nothing is recorded for one.
        run=RunRecord(run_id=workflow.workflow_id, workspace=workflow.workspace, repo_key=workflow.repo_key),
        plan=RunPlan(routes={}),
        policy=policy,
        site=ground.site,
        repo=ground.repo,
        machine=await Machine.open(house, session.launcher),
        session=bounds_of(session, house.env),
        stop=Stop(),
        scratch=scratch,
        base=tested,
    )
    try:
        return await run_checks(ctx, job.terms.tests, commit, told=lambda result: None)
    finally:
        await ctx.close()


def _run(result: CheckResult) -> TestRun:
    # A command that did not come to its own end proves nothing, but a limit it ran into is a failure.
    code = result.exit_code
    ended = (CheckStatus.PASSED, CheckStatus.FAILED)
    outcome = outcome_of(code) if result.status in ended else TestOutcome.SKIPPED
    if result.status in (CheckStatus.TIMED_OUT, CheckStatus.LIMIT):
        outcome = TestOutcome.FAILED
    if result.status is CheckStatus.FAILED and outcome is TestOutcome.SKIPPED:
        outcome = TestOutcome.FAILED
    return TestRun(
        command=result.command,
        outcome=outcome,
        exit_code=code,
        seconds=round(result.seconds, 2),
        detail=result.detail,
        tail=result.tail,
    )


def _whole(house: House, result: CheckResult) -> str:
    if result.output is None:
        return result.tail
    start = max(0, result.output_bytes - MOST_OUTPUT)
    return house.artifacts.read(result.output, start).decode("utf-8", "replace")


if __name__ == "__main__":
    main()
