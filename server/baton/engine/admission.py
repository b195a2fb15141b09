"""Admission: everything about a call is checked here, and nothing is created before all of it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton import __version__
from baton.codex.session_profile import read_session_profile
from baton.contract.advice import Advice
from baton.contract.base import Wire
from baton.contract.catalogue import ModelEntry
from baton.contract.errors import InvalidInput, Unsupported
from baton.contract.session import Session
from baton.contract.states import ChangeIntent, Enforcement
from baton.contract.task import BatchCall, IntegrateMode, Mode, Task
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.engine.machine import Machine
from baton.engine.overlaps import overlapping_pairs, refuse_overlaps
from baton.engine.plan import Exploring, PlannedRoute, RunPlan
from baton.ledger.ids import new_run_id
from baton.ledger.records import JsonObject, NewEvent, RunRecord, TaskRecord
from baton.policy.advice import advise
from baton.policy.model import Policy
from baton.policy.render import role_instructions
from baton.policy.tiers import plan_route
from baton.verify.command import read_command
from baton.workspace.git import Git
from baton.workspace.locate import Site, locate
from baton.workspace.scope import read_scope
from baton.workspace.scope_plan import PlanLimits, plan_scope


@dataclass(frozen=True)
class Admitted:
    """A call that holds: what would be recorded, and what a person should know of it."""

    run: RunRecord
    tasks: tuple[TaskRecord, ...]
    plan: RunPlan
    policy: Policy
    site: Site
    machine: Machine


async def admit(
    house: House, call: BatchCall, session: Session, exploring: Exploring | None = None
) -> Admitted:
    """Check a call as a whole; with `exploring` its task reads and cites.

    Raises `InvalidInput` or `Unsupported`, one line, for the first fault; no run has been created then.
    """
    git = Git.find()
    site = await blocking(locate, _workspace(call, session), git)
    policy = house.policy(site.workspace)
    tasks = [_with_role(task, policy) for task in _with_ids(call.tasks)]
    depends = _dependencies(tasks, call.mode)
    for task in tasks:
        _check_task(task, policy)
    overlapping: list[tuple[str, str, str]] = []
    if len(tasks) > 1 and not call.allow_overlap:
        await blocking(refuse_overlaps, tasks, depends, site, git)
    elif len(tasks) > 1:
        overlapping = await blocking(overlapping_pairs, tasks, depends, site, git)
    machine = await Machine.open(house, session.launcher)
    if policy.enforcement.require_prevention:
        await blocking(_require_prevention, tasks, policy, site, machine)
    catalogue = await machine.catalogue(house)
    routes = {str(task.id): _route(task, policy, catalogue) for task in tasks}
    plan = RunPlan(
        routes=routes,
        result_detail=call.result_detail,
        max_parallel=min(
            call.max_parallel or policy.concurrency.max_parallel, policy.concurrency.max_parallel
        ),
        hold_reason=_hold_reason(house, session, site.workspace),
        root_mode=policy.root.mode,
        notes=[
            *(f"{name}: {route.note}" for name, route in routes.items() if route.note),
            *(f"{one} and {other} may both change {path}" for one, other, path in overlapping),
        ],
        supervisors=[session.thread_id] if session.thread_id else [],
        exploring=exploring,
        facts=call.facts,
        advice=_advice(call, policy),
    )
    run_id = new_run_id()
    run = RunRecord(
        run_id=run_id,
        workspace=str(site.workspace),
        repo_key=site.key,
        mode=call.mode,
        integrate=IntegrateMode.HOLD if plan.hold_reason else call.integrate,
        background=call.background,
        session=_json(session),
        policy=policy.model_dump(mode="json"),
        options=_json(plan),
        program=__version__,
    )
    records = tuple(
        TaskRecord(
            run_id=run_id,
            task_id=str(task.id),
            position=position,
            label=task.label,
            contract=task,
            depends_on=depends[str(task.id)],
        )
        for position, task in enumerate(tasks)
    )
    return Admitted(run=run, tasks=records, plan=plan, policy=policy, site=site, machine=machine)


def record(house: House, admitted: Admitted) -> None:
    """Write the run down. From here on a crash can be continued."""
    detail: JsonObject = {
        "tasks": [task.task_id for task in admitted.tasks],
        "notes": [*admitted.plan.notes],
    }
    house.ledger.create_run(admitted.run, admitted.tasks, event=NewEvent(kind="run.admitted", data=detail))


def _workspace(call: BatchCall, session: Session) -> Path:
    named = call.workspace or session.cwd
    if named is None:
        raise InvalidInput("workspace: Codex did not name the session's folder; give its absolute path")
    path = Path(named)
    if not path.is_absolute():
        raise InvalidInput(f"workspace: must be an absolute path, not {named!r}")
    return path


def _with_ids(tasks: Sequence[Task]) -> list[Task]:
    taken = {task.id for task in tasks if task.id is not None}
    named: list[Task] = []
    for position, task in enumerate(tasks, start=1):
        if task.id is not None:
            named.append(task)
            continue
        name = f"t{position}"
        while name in taken:
            name += "-x"
        taken.add(name)
        named.append(task.model_copy(update={"id": name}))
    seen: set[str] = set()
    for task in named:
        if str(task.id) in seen:
            raise InvalidInput(f"tasks: the id {task.id!r} is given twice")
        seen.add(str(task.id))
    return named


def _dependencies(tasks: Sequence[Task], mode: Mode) -> dict[str, list[str]]:
    """Who waits for whom; sequential tasks wait for the one before. Refuses unknown ids and cycles."""
    order = [str(task.id) for task in tasks]
    wanted: dict[str, list[str]] = {}
    for position, task in enumerate(tasks):
        named = list(dict.fromkeys(task.depends_on))
        for name in named:
            if name not in order:
                raise InvalidInput(f"tasks.{task.id}.dependsOn: no task {name!r} in this call")
        if mode is Mode.SEQUENTIAL and position and order[position - 1] not in named:
            named.append(order[position - 1])
        wanted[order[position]] = named
    _refuse_cycles(wanted)
    return wanted


def _refuse_cycles(wanted: dict[str, list[str]]) -> None:
    left = {name: set(needs) for name, needs in wanted.items()}
    while left:
        free = [name for name, needs in left.items() if not needs & left.keys()]
        if not free:
            raise InvalidInput(f"tasks: dependsOn goes round in a circle among {', '.join(sorted(left))}")
        for name in free:
            del left[name]


def _with_role(task: Task, policy: Policy) -> Task:
    """The task as its role means it: a role's own change intent, where the call names none."""
    if "change_intent" in task.model_fields_set or task.tier is not None:
        return task
    try:
        _, role = policy.role(task.role)
    except InvalidInput as error:
        raise InvalidInput(f"tasks.{task.id}.{error.message}") from None
    return task.model_copy(update={"change_intent": role.change_intent})


def _check_task(task: Task, policy: Policy) -> None:
    where = f"tasks.{task.id}"
    if not task.allowed_files and task.change_intent is not ChangeIntent.FORBIDDEN:
        raise InvalidInput(
            f"{where}.allowedFiles: required unless changeIntent is 'forbidden'; name what may change"
        )
    if task.role is not None and task.tier is not None:
        raise InvalidInput(f"{where}: name a role or a tier, not both")
    try:
        read_scope(task)
        for command in task.verification_commands:
            read_command(command)
        role_instructions(*policy.role(task.role))
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error.message}") from None


def _require_prevention(tasks: Sequence[Task], policy: Policy, site: Site, machine: Machine) -> None:
    """Refuse what the sandbox of this machine cannot hold as a whole."""
    demand = "the policy demands that scope is prevented (enforcement.require_prevention), and here it is"
    if not machine.prevents:
        raise Unsupported(f"{demand} only detected: {machine.why_detected}")
    limits = PlanLimits(siblings=policy.limits.scope_siblings)
    for task in tasks:
        plan = plan_scope(read_scope(task), site.workspace, limits, workspace=site.workspace)
        if plan.enforcement is Enforcement.DETECTED:
            raise Unsupported(f"tasks.{task.id}: {demand} {plan.why_detected}")


def _route(task: Task, policy: Policy, catalogue: Sequence[ModelEntry]) -> PlannedRoute:
    try:
        found = plan_route(policy, catalogue, role=task.role, tier=task.tier, effort=task.effort)
    except InvalidInput as error:
        raise InvalidInput(f"tasks.{task.id}: {error.message}") from None
    return PlannedRoute(
        role=found.role,
        tier=found.tier,
        model=found.model.slug,
        effort=found.effort.effort,
        note=found.effort.note,
    )


def _advice(call: BatchCall, policy: Policy) -> Advice | None:
    """What the declared facts speak for; None when nothing was declared."""
    if call.facts is None:
        return None
    checks = all(task.verification_commands for task in call.tasks)
    return advise(call.facts, policy.advice, policy.root, tasks=len(call.tasks), checks=checks)


def _hold_reason(house: House, session: Session, workspace: Path) -> str | None:
    """Why this session may not have results applied; None when it may."""
    if session.profile is None:
        return None
    profile = read_session_profile(session.profile, house.env)
    if not profile.may_read(workspace):
        raise InvalidInput(f"workspace: this session may not read {workspace}")
    if not profile.may_write(workspace):
        return "the session may not write in the workspace"
    return None


def _json(model: Wire) -> dict[str, Any]:
    return model.wire()
