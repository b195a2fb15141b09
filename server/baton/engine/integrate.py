"""Bring results into the workspace: merge onto it as it is now, verify that tree, apply exactly that."""

from __future__ import annotations

from dataclasses import dataclass, field

from baton.contract.errors import BatonError, WorkspaceMoved
from baton.contract.evidence import CheckResult, CheckStatus, TaskOutcome
from baton.contract.states import Integration
from baton.contract.tree import Snapshot, show_path
from baton.engine.blocking import blocking
from baton.engine.context import RunContext
from baton.engine.verification import CommandText, run_checks
from baton.ledger.records import IntegrationRecord, TaskRecord
from baton.workspace.apply import apply, recover_all
from baton.workspace.journal_place import new_journal
from baton.workspace.lock import RepositoryLock
from baton.workspace.repository import PrivateRepository

TRIES = 3
"""How often a result is merged anew because the workspace moved, before it is held."""

LOCK_SECONDS = 60.0


@dataclass
class Merged:
    """The results merged onto one state of the workspace."""

    onto: Snapshot
    commit: str
    tree: str
    tasks: list[TaskRecord] = field(default_factory=list)
    conflicts: dict[str, str] = field(default_factory=dict)
    """By task: the paths on which it and the workspace, or a task before it, differ."""


class _Blobs:
    """The content of the result, for apply: read from git in groups, in the order in which it is wanted."""

    GROUP = 64

    def __init__(self, repo: PrivateRepository, oids: list[str]) -> None:
        self._repo = repo
        self._ahead = oids
        self._read: dict[str, bytes] = {}

    def read(self, oid: str) -> bytes:
        """Raises `BatonError` when the object is missing; nothing has been applied then."""
        if oid not in self._read:
            start = self._ahead.index(oid) if oid in self._ahead else 0
            group = list(dict.fromkeys([oid, *self._ahead[start : start + self.GROUP]]))
            found = zip(group, self._repo.read_blobs(group), strict=True)
            self._read = {name: content for name, content in found if content is not None}
        if oid not in self._read:
            raise BatonError(f"object {oid} is missing from {self._repo.path}; nothing was applied")
        return self._read[oid]


async def integrate(ctx: RunContext, tasks: list[TaskRecord]) -> Integration:
    """Apply the results of `tasks`, as many of them as fit, or hold them with the reason.

    Each task's outcome is recorded. A conflict keeps out that task alone; a failing check of the merged tree
    keeps out all of them, because the fault lies between them.
    """
    for _ in range(TRIES):
        if ctx.stop.asked:
            return _hold(ctx, tasks, ctx.stop.detail)
        record = ctx.house.ledger.start_integration(ctx.run_id, [task.task_id for task in tasks])
        merged = await _merge_onto_now(ctx, record, tasks)
        if not merged.tasks:
            ctx.house.ledger.update_integration(ctx.run_id, record.number, step="conflict")
            return Integration.CONFLICT
        checks = await _verify_together(ctx, merged)
        ctx.house.ledger.update_integration(ctx.run_id, record.number, step="verified", checks=checks)
        failing = [check for check in checks if check.status is not CheckStatus.PASSED]
        if ctx.stop.asked:
            return _hold(ctx, merged.tasks, ctx.stop.detail)
        if failing:
            ctx.house.ledger.update_integration(ctx.run_id, record.number, step="held")
            reason = f"passes alone, but not on the workspace as it is now: {failing[0].command}"
            return _hold(ctx, merged.tasks, reason)
        try:
            return await blocking(_apply, ctx, record, merged)
        except WorkspaceMoved as moved:
            ctx.house.ledger.update_integration(
                ctx.run_id,
                record.number,
                step="moved",
                detail=moved.message,
                event=ctx.event("integration.moved", detail=moved.message),
            )
            reason = moved.message
        except BatonError as error:
            ctx.house.ledger.update_integration(ctx.run_id, record.number, step="held", detail=error.message)
            return _hold(ctx, merged.tasks, error.message)
    return _hold(ctx, tasks, f"the workspace changed under {TRIES} tries: {reason}")


async def _merge_onto_now(ctx: RunContext, record: IntegrationRecord, tasks: list[TaskRecord]) -> Merged:
    ref = ctx.ref("merge", record.number)
    onto = await blocking(_snapshot_now, ctx, f"{ref}-onto")
    merged = Merged(onto=onto, commit=onto.commit, tree=onto.tree)
    for task in tasks:
        assert task.result is not None and task.result.evidence.commit is not None
        evidence = task.result.evidence
        commit = str(evidence.commit)
        outcome = await blocking(
            ctx.repo.merge, evidence.base, merged.commit, commit, f"baton: {ctx.run_id} {task.task_id}", ref
        )
        if outcome.commit is None or outcome.tree is None:
            named = [f"{show_path(conflict.path)} ({conflict.detail})" for conflict in outcome.conflicts]
            merged.conflicts[task.task_id] = ", ".join(named)
            _settle(ctx, task, Integration.CONFLICT, "conflicts with the workspace: " + ", ".join(named[:5]))
            continue
        merged.commit, merged.tree = outcome.commit, outcome.tree
        merged.tasks.append(task)
    ctx.house.ledger.update_integration(
        ctx.run_id,
        record.number,
        step="merged",
        workspace_commit=onto.commit,
        merged_commit=merged.commit,
        merged_tree=merged.tree,
        conflicts=[f"{task_id}: {paths}" for task_id, paths in merged.conflicts.items()],
        event=ctx.event("integration.merged", tasks=[task.task_id for task in merged.tasks]),
    )
    return merged


def _snapshot_now(ctx: RunContext, ref: str) -> Snapshot:
    with RepositoryLock(ctx.site, timeout=LOCK_SECONDS):
        # An apply that died, perhaps of another home, is finished or undone before anything is built on it.
        recover_all(ctx.site.root, ctx.site.common_dir)
        # With the run, so that what a moved HEAD brings is copied and not merely borrowed.
        return ctx.repo.snapshot(ref, ctx.run_id)


async def _verify_together(ctx: RunContext, merged: Merged) -> list[CheckResult]:
    """The union of the tasks' checks on the merged tree; what passed on this very tree is not repeated."""
    wanted: list[CommandText] = []
    known: list[CheckResult] = []
    for task in merged.tasks:
        assert task.result is not None
        commands = task.contract.verification_commands
        if task.result.evidence.tree == merged.tree and len(task.result.evidence.checks) == len(commands):
            known += [check for check in task.result.evidence.checks if check.status is CheckStatus.PASSED]
            continue
        wanted += [command for command in commands if command not in wanted]
    if not wanted:
        return known
    return [*known, *await run_checks(ctx, wanted, merged.commit)]


def _apply(ctx: RunContext, record: IntegrationRecord, merged: Merged) -> Integration:
    changes = ctx.repo.changes(merged.onto.tree, merged.tree)
    with RepositoryLock(ctx.site, timeout=LOCK_SECONDS):
        journal = new_journal(ctx.site.root, ctx.site.common_dir, ctx.run_id)
        # Written first: whoever finds a dead runner looks there and finishes or undoes it.
        ctx.house.ledger.update_integration(ctx.run_id, record.number, step="applying", journal=str(journal))
        applied = apply(
            ctx.site.workspace,
            changes,
            _Blobs(ctx.repo, [change.new_oid for change in changes]),
            journal,
            object_format=ctx.site.object_format,
            file_mode=ctx.site.file_mode,
        )
        # As one, so that no crash leaves a result that landed with nobody knowing.
        with ctx.house.ledger.transaction():
            ctx.house.ledger.update_integration(
                ctx.run_id,
                record.number,
                step="applied",
                event=ctx.event("integration.applied", paths=len(applied.changed)),
            )
            for task in merged.tasks:
                assert task.result is not None
                changed = bool(task.result.evidence.changes)
                _settle(ctx, task, Integration.APPLIED if changed else Integration.NOTHING, None)
    return Integration.APPLIED if changes else Integration.NOTHING


def _hold(ctx: RunContext, tasks: list[TaskRecord], reason: str) -> Integration:
    for task in tasks:
        _settle(ctx, task, Integration.HELD, reason)
    ctx.note("integration.held", reason=reason, tasks=[task.task_id for task in tasks])
    return Integration.HELD


def _settle(ctx: RunContext, task: TaskRecord, integration: Integration, detail: str | None) -> None:
    ctx.house.ledger.update_task(
        ctx.run_id, task.task_id, outcome=TaskOutcome(integration=integration, detail=detail)
    )
