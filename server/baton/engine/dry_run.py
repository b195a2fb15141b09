"""What a call would do, without doing it: routes, scopes as read, what the sandbox opens, base and checks."""

from __future__ import annotations

import os
from typing import Any

from baton.contract.scope import ScopePlan
from baton.contract.task import IntegrateMode
from baton.contract.tree import show_path
from baton.engine.admission import Admitted
from baton.engine.present import told_by_plan
from baton.engine.shorten import fit
from baton.ledger.records import TaskRecord
from baton.verify.command import read_command
from baton.workspace.scope import read_scope
from baton.workspace.scope_plan import PlanLimits, plan_scope

MAX_ROOTS = 8


def dry_run(admitted: Admitted) -> dict[str, Any]:
    """The answer to a call with `dryRun`. Nothing is created and no worker is started."""
    machine, plan = admitted.machine, admitted.plan
    shown: dict[str, Any] = {
        "dryRun": True,
        "workspace": str(admitted.site.workspace),
        # The snapshot that a run starts from is taken when it starts.
        "base": admitted.site.head,
        "scope": "prevented" if machine.prevents else "detected",
        "network": admitted.policy.network.worker_hosts or "none",
        "maxParallel": plan.max_parallel,
        "tasks": [_planned(admitted, task) for task in admitted.tasks],
    }
    if machine.why_detected:
        shown["whyDetected"] = machine.why_detected
    if admitted.run.integrate is IntegrateMode.HOLD:
        shown["hold"] = plan.hold_reason or "the call asks to hold the result"
    shown |= told_by_plan(plan)
    if plan.advice is not None:
        shown["advice"] = plan.advice.wire()
    return fit(shown)


def _planned(admitted: Admitted, task: TaskRecord) -> dict[str, Any]:
    route = admitted.plan.routes[task.task_id]
    workspace = admitted.site.workspace
    limits = PlanLimits(siblings=admitted.policy.limits.scope_siblings)
    plan = plan_scope(read_scope(task.contract), workspace, limits, workspace=workspace)
    shown: dict[str, Any] = {
        "id": task.task_id,
        "model": route.model,
        "effort": route.effort,
        **({"role": route.role} if route.role else {"tier": route.tier}),
        "scope": [f"{one.pattern}: {one.reading} ({one.enforcement})" for one in plan.readings],
        **_profile(admitted, plan),
        "checks": [read_command(command).shown for command in task.contract.verification_commands],
    }
    if task.depends_on:
        shown["dependsOn"] = task.depends_on
    return shown


def _profile(admitted: Admitted, plan: ScopePlan) -> dict[str, Any]:
    """What the sandbox would open, relative to the workspace."""
    top = os.fsencode(admitted.site.workspace)
    roots = [show_path(os.path.relpath(os.fsencode(root), top)) + "/" for root in plan.writable_roots]
    shown: dict[str, Any] = {"writable": roots[:MAX_ROOTS]}
    if len(roots) > MAX_ROOTS:
        shown["moreWritable"] = len(roots) - MAX_ROOTS
    if plan.readonly:
        shown["readOnlyInside"] = len(plan.readonly)
    if plan.hidden_paths or plan.hidden_globs:
        shown["hidden"] = len(plan.hidden_paths) + len(plan.hidden_globs)
    if plan.why_detected:
        shown["whyDetected"] = plan.why_detected
    return shown
