"""Bring results into the workspace: merge onto it as it is now, verify that tree, apply exactly that."""

from __future__ import annotations

from collections.abc import Sequence

from baton.contract.errors import BatonError, WorkspaceMoved
from baton.contract.evidence import CheckResult, CheckStatus, TaskOutcome
from baton.contract.states import Integration
from baton.contract.tree import Snapshot
from baton.engine.blocking import blocking
from baton.engine.context import RunContext
from baton.engine.fitting import find_fit
from baton.engine.merging import Merged, in_order, merge_onto
from baton.engine.verification import CommandText, run_checks
from baton.ledger.records import IntegrationRecord, TaskRecord
from baton.workspace.apply import apply, recover_all
from baton.workspace.journal_place import new_journal
from baton.workspace.lock import RepositoryLock
from baton.workspace.repository import PrivateRepository

TRIES = 3
"""How often a result is merged anew because the workspace moved, before it is held."""

LOCK_SECONDS = 60.0


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

    Each task's outcome is recorded. A conflict keeps out that task and what builds on it. When the merged
    tree fails a check, the results that do not go together with the others are looked for within a bounded
    number of checks (see `find_fit`) and held; what lands has always passed together.
    """
    tasks = in_order(tasks)
    aside: list[str] = []
    for _ in range(TRIES):
        if ctx.stop.asked:
            return _hold(ctx, tasks, ctx.stop.detail)
        record = ctx.house.ledger.start_integration(ctx.run_id, [task.task_id for task in tasks])
        merged = await _merge_onto_now(ctx, record, tasks)
        checks = await _verify_together(ctx, merged)
        failing = _failing(checks)
        if failing is not None and not ctx.stop.asked:
            merged, checks = await _what_fits(ctx, record, merged, checks, failing)
        if ctx.stop.asked:
            return _hold(ctx, tasks, ctx.stop.detail)
        _record_verified(ctx, record, merged, checks)
        if not merged.tasks:
            return _integration_of(merged)
        try:
            return await blocking(_apply, ctx, record, merged, "; ".join(aside) or None)
        except WorkspaceMoved as moved:
            ctx.house.ledger.update_integration(
                ctx.run_id,
                record.number,
                step="moved",
                detail=moved.message,
                event=ctx.event("integration.moved", detail=moved.message),
            )
            reason = moved.message
            aside += moved.kept
        except BatonError as error:
            ctx.house.ledger.update_integration(ctx.run_id, record.number, step="held", detail=error.message)
            return _hold(ctx, merged.tasks, error.message)
    why = "; ".join([reason, *(line for line in aside if line not in reason)])
    return _hold(ctx, tasks, f"the workspace changed under {TRIES} tries: {why}")


async def _merge_onto_now(ctx: RunContext, record: IntegrationRecord, tasks: list[TaskRecord]) -> Merged:
    ref = ctx.ref("merge", record.number)
    onto = await blocking(_snapshot_now, ctx, f"{ref}-onto")
    merged = await blocking(merge_onto, ctx, onto, tasks, ref)
    _record_merged(ctx, record, merged, "integration.merged")
    return merged


async def _what_fits(
    ctx: RunContext, record: IntegrationRecord, all_of_them: Merged, checks: list[CheckResult], failing: str
) -> tuple[Merged, list[CheckResult]]:
    """The merge of those results that pass together, with their checks; the others are left out of it."""
    ref = ctx.ref("merge", record.number)
    onto = all_of_them.onto
    best = Merged(onto=onto, commit=onto.commit, tree=onto.tree), list[CheckResult]()

    async def try_out(names: list[str]) -> str | None:
        nonlocal best
        chosen = [task for task in all_of_them.tasks if task.task_id in names]
        merged = await blocking(merge_onto, ctx, onto, chosen, ref)
        seen = await _verify_together(ctx, merged)
        # A stop cuts the checks short: what has not been run has not passed.
        found = ctx.stop.detail if ctx.stop.asked else _failing(seen)
        if found is None and len(merged.tasks) > len(best[0].tasks):
            best = merged, seen
        return found

    fit = await find_fit([task.task_id for task in all_of_them.tasks], failing, try_out)
    merged, seen = best
    for name, why in fit.left_out.items():
        merged.left_out.setdefault(name, (Integration.HELD, why))
    merged.left_out = {**all_of_them.left_out, **merged.left_out}
    if merged.tasks:
        await blocking(ctx.repo.set_ref, ref, merged.commit)
    else:
        seen = checks
    _record_merged(ctx, record, merged, "integration.reduced")
    return merged, seen


def _record_merged(ctx: RunContext, record: IntegrationRecord, merged: Merged, kind: str) -> None:
    names = [task.task_id for task in merged.tasks]
    ctx.house.ledger.update_integration(
        ctx.run_id,
        record.number,
        step="merged",
        workspace_commit=merged.onto.commit,
        merged_commit=merged.commit,
        merged_tree=merged.tree,
        conflicts=[f"{task_id}: {why}" for task_id, (_, why) in merged.left_out.items()],
        event=ctx.event(kind, tasks=[*names], leftOut=[*merged.left_out]),
    )


def _record_verified(
    ctx: RunContext, record: IntegrationRecord, merged: Merged, checks: list[CheckResult]
) -> None:
    """What stays out is settled before anything is applied, so that no crash leaves it without its reason."""
    with ctx.house.ledger.transaction():
        for name, (integration, why) in merged.left_out.items():
            _settle(ctx, name, integration, why)
        step = "verified" if merged.tasks else _integration_of(merged).value
        ctx.house.ledger.update_integration(ctx.run_id, record.number, step=step, checks=checks)


def _integration_of(merged: Merged) -> Integration:
    """What became of a merge into which nothing went."""
    kinds = [integration for integration, _ in merged.left_out.values()]
    return Integration.CONFLICT if Integration.CONFLICT in kinds else Integration.HELD


def _failing(checks: Sequence[CheckResult]) -> str | None:
    return next((check.command for check in checks if check.status is not CheckStatus.PASSED), None)


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


def _apply(ctx: RunContext, record: IntegrationRecord, merged: Merged, detail: str | None) -> Integration:
    """`detail` is what the person must know although everything landed."""
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
                integration = Integration.APPLIED if changed else Integration.NOTHING
                _settle(ctx, task.task_id, integration, detail)
    return Integration.APPLIED if changes else Integration.NOTHING


def _hold(ctx: RunContext, tasks: list[TaskRecord], reason: str) -> Integration:
    for task in tasks:
        _settle(ctx, task.task_id, Integration.HELD, reason)
    ctx.note("integration.held", reason=reason, tasks=[task.task_id for task in tasks])
    return Integration.HELD


def _settle(ctx: RunContext, task_id: str, integration: Integration, detail: str | None) -> None:
    ctx.house.ledger.update_task(
        ctx.run_id, task_id, outcome=TaskOutcome(integration=integration, detail=detail)
    )
