"""What makes an exploration of a task: what it may read, and the check of what it cites."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from baton.contract.calls import ExploreCall
from baton.contract.evidence import Evidence, Violation
from baton.contract.findings import CheckedFinding, CitationStatus, Finding
from baton.contract.scope import ScopePlan
from baton.contract.states import ChangeIntent, Enforcement
from baton.contract.task import BatchCall, ContextCapsule, Task, TaskCategory
from baton.contract.tree import show_path
from baton.engine.citations import check_findings, cited_path
from baton.engine.context import RunContext
from baton.engine.plan import Exploring
from baton.workspace.repository import PrivateRepository
from baton.workspace.scope_visible import covers, plan_visible, read_patterns

ROLE = "terra-explorer"

OUTSIDE = "outside `files`"


def exploration(call: ExploreCall) -> tuple[BatchCall, Exploring]:
    """An exploration as a run of one task that may change nothing. Raises `InvalidInput`."""
    read_patterns(call.files)
    task = Task(
        objective=call.question,
        role=call.role or ROLE,
        effort=call.effort,
        task_category=TaskCategory.INVESTIGATION,
        change_intent=ChangeIntent.FORBIDDEN,
        context_capsule=ContextCapsule(relevant_context=call.context) if call.context else None,
        timeout_seconds=call.timeout_seconds,
    )
    batch = BatchCall(tasks=[task], workspace=call.workspace, wait_seconds=call.wait_seconds)
    return batch, Exploring(files=call.files)


def limit_reading(plan: ScopePlan, exploring: Exploring, cwd: Path) -> ScopePlan:
    """The plan with only those files in sight that may be read. Raises `InvalidInput` when there are none."""
    if not exploring.files:
        return plan
    shown = plan_visible(read_patterns(exploring.files), cwd)
    reasons = [reason for reason in (plan.why_detected, shown.wider) if reason]
    return dataclasses.replace(
        plan,
        visible=shown.paths,
        readings=(*plan.readings, *shown.readings),
        enforcement=Enforcement.DETECTED if reasons else plan.enforcement,
        why_detected="; ".join(reasons) or None,
    )


def with_citations(
    ctx: RunContext, evidence: Evidence, findings: Sequence[Finding], worktree: str | None
) -> Evidence:
    """The evidence with what the worker cites compared with the files that it was given."""
    assert ctx.plan.exploring is not None
    roots = [str(ctx.site.workspace)]
    if worktree is not None:
        roots.append(str(Path(worktree) / os.fsdecode(ctx.site.prefix).rstrip("/")))
    checked, violations = _check_citations(ctx.repo, evidence.base, ctx.plan.exploring, findings, roots)
    scope = evidence.scope
    if violations:
        scope = scope.model_copy(update={"violations": [*scope.violations, *violations]})
    return evidence.model_copy(update={"findings": checked, "scope": scope})


def _check_citations(
    repo: PrivateRepository,
    commit: str,
    exploring: Exploring,
    findings: Sequence[Finding],
    roots: Sequence[str],
) -> tuple[list[CheckedFinding], list[Violation]]:
    """Every finding as the tree of `commit` has it, and what was read although it may not be.

    A true citation of a file outside `files` can only come from reading it.
    """
    patterns = read_patterns(exploring.files)

    def read(path: bytes) -> bytes | None:
        return repo.read_file(commit, path)

    checked, violations = [], []
    for finding in check_findings(findings, read, roots):
        path = cited_path(finding.file, roots)
        if not patterns or path is None or covers(patterns, path):
            checked.append(finding)
            continue
        if finding.holds:
            violations.append(Violation(path=show_path(path), rule=f"read although it is {OUTSIDE}"))
        changes = {"status": CitationStatus.NOT_FOUND, "found_line": None, "detail": OUTSIDE}
        checked.append(finding.model_copy(update=changes))
    return checked, violations
