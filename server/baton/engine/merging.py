"""Merges the results of a run's tasks onto a state of the workspace, and says which stay out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from baton.contract.states import Integration
from baton.contract.tree import MergeConflict, Snapshot, show_path
from baton.engine.context import RunContext
from baton.ledger.records import TaskRecord
from baton.workspace.overlay import merge_disjoint

MAX_PATHS = 5

LANDED = (Integration.APPLIED, Integration.NOTHING)


@dataclass
class Merged:
    """The results merged onto one state of the workspace."""

    onto: Snapshot
    commit: str
    tree: str
    tasks: list[TaskRecord] = field(default_factory=list)
    left_out: dict[str, tuple[Integration, str]] = field(default_factory=dict)
    """By task: `conflict` or `held`, and why."""

    def leave_out(self, task: TaskRecord, integration: Integration, why: str) -> None:
        self.left_out[task.task_id] = (integration, why)


def merge_onto(ctx: RunContext, onto: Snapshot, tasks: Sequence[TaskRecord], ref: str) -> Merged:
    """Merge what can be merged of `tasks`, which are in an order in which predecessors come first.

    A conflict keeps out that task alone, and those that build on it. Both sides stay where they are: the
    task's own ref and the snapshot `ref`-onto. The merge is named by `ref`.
    """
    merged = Merged(onto=onto, commit=onto.commit, tree=onto.tree)
    together = _merge_together(ctx, merged, tasks, ref)
    for task in tasks:
        if task.task_id in together:
            continue
        missing = _missing_predecessor(ctx, task, merged)
        if missing is not None:
            merged.leave_out(
                task, Integration.HELD, f"it builds on the result of {missing}, which has not landed"
            )
            continue
        outcome = ctx.repo.merge(base_of(task), merged.commit, commit_of(task), _message(ctx, [task]), ref)
        if outcome.commit is None or outcome.tree is None:
            why = _conflict(ctx.site.prefix, outcome.conflicts, merged.tasks, task)
            merged.leave_out(task, Integration.CONFLICT, why)
            continue
        merged.commit, merged.tree = outcome.commit, outcome.tree
        merged.tasks.append(task)
    merged.tasks.sort(key=tasks.index)
    return merged


def in_order(tasks: Sequence[TaskRecord]) -> list[TaskRecord]:
    """The tasks so that each comes after those it depends on; else as they were. There is no cycle."""
    known = {task.task_id: task for task in tasks}
    done: dict[str, TaskRecord] = {}
    left = list(tasks)
    while left:
        waiting = [task for task in left if any(n in known and n not in done for n in task.depends_on)]
        for task in left:
            if task not in waiting:
                done[task.task_id] = task
        left = waiting
    return list(done.values())


def commit_of(task: TaskRecord) -> str:
    """The commit that keeps the task's result; only for tasks that have one."""
    assert task.result is not None and task.result.evidence.commit is not None
    return task.result.evidence.commit


def base_of(task: TaskRecord) -> str:
    """The commit that the task's change is measured from."""
    assert task.result is not None
    return task.result.evidence.base


def _merge_together(
    ctx: RunContext, merged: Merged, tasks: Sequence[TaskRecord], ref: str
) -> Mapping[str, TaskRecord]:
    """Take in at once what started from the run's snapshot and touches paths that nobody else does."""
    if ctx.base is None:
        return {}
    free = [task for task in tasks if base_of(task) == ctx.base.commit and not task.depends_on]
    theirs = [commit_of(task) for task in free]
    laid = merge_disjoint(
        ctx.repo, ctx.base.tree, merged.commit, merged.tree, theirs, _message(ctx, free), ref
    )
    if laid is None:
        return {}
    merged.commit, merged.tree = laid.commit, laid.tree
    merged.tasks = [free[number] for number in laid.taken]
    return {task.task_id: task for task in merged.tasks}


def _missing_predecessor(ctx: RunContext, task: TaskRecord, merged: Merged) -> str | None:
    """A predecessor whose changes are in the task's base but neither in the workspace nor in the merge."""
    inside = {done.task_id for done in merged.tasks}
    for name in task.depends_on:
        before = ctx.house.ledger.task(ctx.run_id, name)
        changed = before.result is not None and bool(before.result.evidence.changes)
        if changed and name not in inside and before.outcome.integration not in LANDED:
            return name
    return None


def _conflict(
    prefix: bytes, conflicts: Sequence[MergeConflict], before: Sequence[TaskRecord], task: TaskRecord
) -> str:
    named = []
    for conflict in conflicts[:MAX_PATHS]:
        path = show_path(conflict.path.removeprefix(prefix))
        others = [one.task_id for one in before if path in _changed_paths(one)]
        named.append(
            f"{path} ({conflict.detail}) with {' and '.join(others) or 'the workspace as it is now'}"
        )
    more = f" and {len(conflicts) - MAX_PATHS} more" if len(conflicts) > MAX_PATHS else ""
    return f"conflicts on {', '.join(named)}{more}; its side is kept in {task.kept}"


def _changed_paths(task: TaskRecord) -> set[str]:
    assert task.result is not None
    return {
        path for change in task.result.evidence.changes for path in (change.path, change.old_path) if path
    }


def _message(ctx: RunContext, tasks: Sequence[TaskRecord]) -> str:
    return f"baton: {ctx.run_id} {' '.join(task.task_id for task in tasks)}"
