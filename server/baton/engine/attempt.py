"""One attempt at one task, top to bottom: isolate, work, capture, verify, judge."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from baton.codex.appserver import AppServer
from baton.codex.brief import parse_claim, parse_exploration
from baton.codex.faults import ThreadRefused
from baton.codex.profile import PermissionProfile
from baton.codex.thread import WorkerThread, resume_thread, start_thread
from baton.codex.turn import TurnOutcome
from baton.contract.claim import claim_schema
from baton.contract.errors import CodexFailure
from baton.contract.evidence import AttemptResult, CheckResult, Evidence, ScopeEvidence, TurnFailure, Usage
from baton.contract.findings import exploration_schema
from baton.contract.scope import ScopePlan
from baton.contract.states import Enforcement, FailureClass, TaskState
from baton.contract.tree import Capture
from baton.contract.wording import many
from baton.engine.blocking import blocking
from baton.engine.context import RunContext
from baton.engine.evidence import scope_evidence, shown, shown_changes, violations_of
from baton.engine.explore import with_citations
from baton.engine.followup import AttemptKind
from baton.engine.isolation import Place, isolate, thread_settings, worker_profile
from baton.engine.judge import Observed, discrepancies, judge
from baton.engine.quiet import quiet
from baton.engine.stop import StopReason
from baton.engine.turn_text import continuation_text, first_text
from baton.engine.verification import run_checks
from baton.ledger.records import AttemptRecord, JsonObject, TaskRecord
from baton.workspace.scope import Scope, read_scope

INTERRUPT_INTERVAL = 0.1
"""Seconds between two requests to end a turn that has not been given its id yet."""


@dataclass
class Working:
    """What is known of an attempt while it goes on."""

    task: TaskRecord
    record: AttemptRecord
    scope: Scope
    place: Place | None = None
    held: ScopeEvidence | None = None
    """How the scope is held, without violations."""
    sandboxed: tuple[Path, ...] | None = None
    """The folders that the sandbox lets the worker write, where it prevents all else and held to the end."""
    message: str | None = None
    """The worker's final message."""
    usage: Usage = field(default_factory=Usage)
    failure: TurnFailure | None = None
    evidence: Evidence | None = None
    """What the capture showed; without checks."""
    checks: list[CheckResult] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)


async def attempt(ctx: RunContext, task: TaskRecord, record: AttemptRecord) -> AttemptResult:
    """Carry an attempt to its verdict.

    Every step is recorded as it is done, so what a crash leaves can be taken up again. What goes wrong with
    the worker is part of the result; only failures of Baton's own surroundings raise.
    """
    work = Working(task=task, record=record, scope=read_scope(task.contract))
    plan = await _isolate(ctx, work)
    try:
        await _work(ctx, work, plan)
    finally:
        # Before anything else may happen to the worktree, whatever ended the work.
        with anyio.CancelScope(shield=True):
            await _capture(ctx, work)
    await _verify(ctx, work)
    return _judge(ctx, work)


def is_captured(record: AttemptRecord) -> bool:
    """Whether the attempt's turn was over and its tree kept, so that only checks and verdict are missing."""
    return record.commit is not None and record.result is None and "evidence" in record.data


async def finish(ctx: RunContext, task: TaskRecord, record: AttemptRecord) -> AttemptResult:
    """Verify and judge an attempt that was captured before its runner died."""
    work = Working(task=task, record=record, scope=read_scope(task.contract))
    work.evidence = Evidence.model_validate(record.data["evidence"])
    work.usage = Usage.model_validate(record.data.get("usage") or {})
    failure = record.data.get("failure")
    work.failure = None if failure is None else TurnFailure.model_validate(failure)
    work.message = recall_report(ctx, task.task_id, record.attempt)
    await _verify(ctx, work)
    return _judge(ctx, work)


async def _isolate(ctx: RunContext, work: Working) -> ScopePlan:
    work.place, plan = await isolate(ctx, work.task, work.record, work.scope)
    # The mark in the worktree says whose it is; the record follows with the thread.
    work.record = work.record.model_copy(update={"worktree": str(work.place.root), "step": "isolated"})
    return plan


async def _work(ctx: RunContext, work: Working, plan: ScopePlan) -> None:
    assert work.place is not None
    profile = worker_profile(ctx, work.place, plan)
    work.held = scope_evidence(plan, profile, ctx.machine.why_detected, [])
    if work.held.enforcement is Enforcement.PREVENTED:
        work.sandboxed = tuple(Path(root) for root in profile.writable_roots)
    if ctx.stop.asked:
        return
    try:
        async with ctx.servers.one() as server:
            await _converse(ctx, work, server, profile, plan)
    except ThreadRefused as refused:
        work.failure = refused.failure
    except CodexFailure as broken:
        work.failure = TurnFailure(failure_class=FailureClass.CRASH, message=broken.message)


async def _converse(
    ctx: RunContext, work: Working, server: AppServer, profile: PermissionProfile, plan: ScopePlan
) -> None:
    thread = await _open_thread(ctx, work, server, profile)
    try:
        text = await _text(ctx, work, plan)
        with ctx.house.ledger.transaction():
            ctx.keep("brief", text.encode(), work.task.task_id, work.record.attempt)
            _step(
                ctx, work, "working", thread_id=thread.id, route=thread.route, worktree=work.record.worktree
            )
        outcome = await _turn(ctx, work, thread, text)
        work.message, work.usage, work.failure = outcome.final_message, outcome.usage, outcome.failure
        if work.failure is not None:
            work.failure = ctx.machine.home.explained(work.failure)
        work.notices += outcome.notices
    finally:
        with anyio.CancelScope(shield=True):
            await _quiet(work, server, thread)
        work.record = work.record.model_copy(update={"route": thread.route})


async def _open_thread(
    ctx: RunContext, work: Working, server: AppServer, profile: PermissionProfile
) -> WorkerThread:
    assert work.place is not None
    settings = thread_settings(ctx, work.record, work.place, profile)
    timeout = ctx.policy.deadlines.start_seconds
    if work.record.thread_id is not None:
        try:
            return await resume_thread(server, work.record.thread_id, settings, timeout=timeout)
        except ThreadRefused:
            if work.record.kind != AttemptKind.RECOVERY:
                raise
            # A thread that was cut before its first turn has left no file: another one does its work.
            work.record = ctx.house.ledger.update_attempt(
                ctx.run_id, work.task.task_id, work.record.attempt, kind=AttemptKind.FRESH, thread_id=None
            )
    return await start_thread(server, settings, timeout=timeout)


async def _text(ctx: RunContext, work: Working, plan: ScopePlan) -> str:
    assert work.place is not None
    if work.record.thread_id is None or work.record.kind in (AttemptKind.FIRST, AttemptKind.FRESH):
        exploring = ctx.plan.exploring is not None
        return await blocking(
            first_text, work.task.contract, work.record, plan, work.place, exploring=exploring
        )
    return continuation_text(work.task.contract, work.record, work.place)


async def _turn(ctx: RunContext, work: Working, thread: WorkerThread, text: str) -> TurnOutcome:
    task, number = work.task, work.record.attempt
    outcome: TurnOutcome | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_interrupt_on_stop, ctx, thread)
        outcome = await thread.run_turn(
            text,
            output_schema=claim_schema() if ctx.plan.exploring is None else exploration_schema(),
            deadlines=ctx.deadlines(task.contract.timeout_seconds),
            on_event=lambda event: ctx.progress(task.task_id, number, event),
        )
        tasks.cancel_scope.cancel()
    assert outcome is not None
    return outcome


async def _interrupt_on_stop(ctx: RunContext, thread: WorkerThread) -> None:
    await ctx.stop.wait()
    while not await thread.interrupt():
        await anyio.sleep(INTERRUPT_INTERVAL)


async def _quiet(work: Working, server: AppServer, thread: WorkerThread) -> None:
    """End everything the worker left running, before its tree is looked at."""
    notice = await quiet(server, thread)
    if notice is not None:
        work.notices.append(notice)
        work.sandboxed = None


async def _capture(ctx: RunContext, work: Working) -> None:
    assert work.place is not None
    place, task_id, number = work.place, work.task.task_id, work.record.attempt
    ref = ctx.ref("tasks", task_id, number)
    capture = await blocking(
        ctx.repo.capture,
        place.lease.worktree,
        place.base,
        ref,
        aside_folder(ctx, task_id, number),
        work.sandboxed,
    )
    work.evidence = _observed(work, capture)
    data: JsonObject = {
        **work.record.data,
        "usage": work.usage.wire(),
        "evidence": work.evidence.wire(),
    }
    if work.failure is not None:
        data["failure"] = work.failure.wire()
    with ctx.house.ledger.transaction():
        if work.message is not None:
            ctx.keep("report", work.message.encode("utf-8", "replace"), task_id, number)
        _step(
            ctx,
            work,
            "captured",
            commit=capture.commit,
            data=data,
            route=work.record.route,
            worktree=work.record.worktree,
        )
        ctx.house.ledger.update_task(ctx.run_id, task_id, kept=ref)
    await blocking(place.leave)


def _observed(work: Working, capture: Capture) -> Evidence:
    held = work.held or ScopeEvidence(enforcement=Enforcement.PREVENTED)
    return Evidence(
        base=work.record.base_commit or "",
        tree=capture.tree,
        commit=capture.commit,
        changes=shown_changes(capture.changes),
        ignored=shown(capture.ignored),
        nested=shown(capture.nested),
        unsupported=shown(capture.unsupported),
        scope=held.model_copy(update={"violations": violations_of(capture, work.scope)}),
        notices=[*work.notices, *_capture_notices(capture)],
        turn_failure=work.failure,
        aside=None if capture.aside is None else str(capture.aside),
    )


def aside_folder(ctx: RunContext, task_id: str, number: int) -> Path:
    """Where an attempt's ignored and nested content is kept."""
    return ctx.house.state.root / "aside" / ctx.run_id / f"{task_id}-{number}"


async def _verify(ctx: RunContext, work: Working) -> None:
    assert work.evidence is not None
    if ctx.plan.exploring is not None and not ctx.stop.asked:
        found = parse_exploration(work.message).findings
        work.evidence = await blocking(with_citations, ctx, work.evidence, found, work.record.worktree)
    commands = work.task.contract.verification_commands
    assert work.evidence.commit is not None
    # A turn that failed without leaving a change has nothing that checks could speak for.
    nothing_left = work.failure is not None and not work.evidence.changes
    if ctx.stop.asked or not commands or nothing_left:
        return
    with ctx.house.ledger.transaction(durable=False):
        ctx.house.ledger.update_task(ctx.run_id, work.task.task_id, state=TaskState.VERIFYING)
    work.checks = await run_checks(
        ctx, commands, work.evidence.commit, work.task.task_id, work.record.attempt
    )
    with ctx.house.ledger.transaction(durable=False):
        _step(ctx, work, "verified")


def _judge(ctx: RunContext, work: Working) -> AttemptResult:
    assert work.evidence is not None
    evidence, record = work.evidence, work.record
    report = (parse_claim if ctx.plan.exploring is None else parse_exploration)(work.message)
    seen = Observed(
        intent=work.task.contract.change_intent,
        changed=tuple(
            path for change in evidence.changes for path in _both_ends(change.old_path, change.path)
        ),
        violations=tuple(evidence.scope.violations),
        checks=tuple(work.checks),
        claim=report.claim,
        findings=None if evidence.findings is None else tuple(evidence.findings),
        turn_failure=work.failure,
        cancelled=ctx.stop.reason is StopReason.CANCELLED,
        interrupted=ctx.stop.reason is StopReason.INTERRUPTED,
    )
    verdict, reasons = judge(seen)
    notices = list(evidence.notices)
    if report.claim is None and report.why and work.failure is None and not ctx.stop.asked:
        notices.append(f"the final report cannot be read: {report.why}")
    result = AttemptResult(
        attempt=record.attempt,
        thread_id=record.thread_id,
        verdict=verdict,
        reasons=reasons,
        claim=report.claim,
        malformed_report=report.malformed if report.claim is None else None,
        evidence=evidence.model_copy(
            update={"checks": work.checks, "discrepancies": discrepancies(seen), "notices": notices}
        ),
        route=record.route,
        usage=work.usage,
        seconds=round(time.monotonic() - work.began, 3),
    )
    _step(ctx, work, "judged", result=result)
    return result


def recall_report(ctx: RunContext, task_id: str, number: int) -> str | None:
    """The worker's final message as it was kept, None when there was none."""
    for ref in ctx.house.ledger.artifact_refs(ctx.run_id, task_id):
        if ref.name == "report" and ref.attempt == number:
            return ctx.house.artifacts.read(ref.artifact).decode("utf-8", "replace")
    return None


def _both_ends(old: str | None, new: str) -> Sequence[str]:
    return (new,) if old is None else (old, new)


def _capture_notices(capture: Capture) -> list[str]:
    found = []
    if capture.ignored:
        found.append(
            many(len(capture.ignored), "ignored path is", "ignored paths are")
            + " kept apart and never applied"
        )
    if capture.nested:
        found.append(
            many(len(capture.nested), "nested repository is", "nested repositories are")
            + " kept apart and never applied"
        )
    if capture.unsupported:
        found.append(many(len(capture.unsupported), "path") + " cannot be kept by git")
    if capture.aside_cut:
        found.append("not all ignored content was kept: it is larger than the limit")
    return found


def _step(ctx: RunContext, work: Working, step: str, **fields: object) -> None:
    """Record that the attempt has come this far, with what is known now."""
    work.record = ctx.house.ledger.update_attempt(
        ctx.run_id,
        work.task.task_id,
        work.record.attempt,
        event=ctx.event(f"attempt.{step}", work.task.task_id, work.record.attempt),
        step=step,
        **fields,
    )
