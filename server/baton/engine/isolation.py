"""A worker's place: its worktree, its scratch folder, and the sandbox around them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from baton.codex.profile import PermissionProfile, WorkerPlace, build_profile
from baton.codex.settings import ThreadSettings
from baton.contract.errors import Unsupported
from baton.contract.scope import ScopePlan
from baton.contract.states import Enforcement
from baton.contract.tree import show_path
from baton.engine.blocking import blocking
from baton.engine.context import RunContext
from baton.engine.explore import limit_reading
from baton.engine.route import route_of
from baton.ledger.records import AttemptRecord, TaskRecord
from baton.policy.render import role_instructions
from baton.process.environment import worker_environment
from baton.workspace.pool import Lease, WorktreePool
from baton.workspace.scope import Scope
from baton.workspace.scope_plan import PlanLimits, make_dirs, plan_scope
from baton.workspace.stores import git_stores
from baton.workspace.worktree import Worktree
from baton.workspace.worktree_git import give_git


@dataclass
class Place:
    """Where one attempt works."""

    lease: Lease
    base: str
    """The commit that the attempt's changes are measured from."""
    links: tuple[Path, ...]
    """Dependencies put into the worktree by us; no part of what the worker did."""
    scratch: Path
    """Its own folder for a home and temporary files."""
    git: Path | None
    """The git directory that it is shown, None when it has none."""

    @property
    def root(self) -> Path:
        return self.lease.worktree.root

    @property
    def cwd(self) -> Path:
        return self.lease.worktree.cwd

    def leave(self) -> None:
        """Give the worktree back, its content being captured; the scratch folder goes with it."""
        self.lease.give_back()


async def isolate(
    ctx: RunContext, task: TaskRecord, record: AttemptRecord, scope: Scope
) -> tuple[Place, ScopePlan]:
    """Make the attempt's place: a worktree of what it starts from, with the directories its scope needs."""
    return await blocking(_isolate, ctx, task, record, scope)


def _isolate(
    ctx: RunContext, task: TaskRecord, record: AttemptRecord, scope: Scope
) -> tuple[Place, ScopePlan]:
    base = record.base_commit
    assert base is not None, "an attempt is recorded with its base"
    start = record.data.get("treeFrom")
    start = start if isinstance(start, str) else base
    lease = WorktreePool(ctx.repo, ctx.house.state).lease(start)
    try:
        lease.reserve(f"{ctx.run_id}/{task.task_id}/{record.attempt}")
        dependencies = ctx.policy.dependencies
        links = ctx.repo.link_dependencies(lease.worktree, dependencies.folders, dependencies.mode)
        links += _link_submodules(ctx, lease.worktree, scope)
        limits = PlanLimits(siblings=ctx.policy.limits.scope_siblings)
        plan = plan_scope(scope, lease.worktree.cwd, limits, workspace=ctx.site.workspace, skip=links)
        if ctx.plan.exploring is not None:
            plan = limit_reading(plan, ctx.plan.exploring, lease.worktree.cwd)
        make_dirs(plan)
        git = None if _hides(plan) else give_git(ctx.repo, lease.worktree, start, head_of(ctx))
        scratch = lease.worktree.scratch
        for folder in (scratch / "home", scratch / "tmp"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lease.prepared(sandboxed=_sandboxed(ctx, lease.worktree, plan))
    except BaseException:
        lease.give_back()
        raise
    return Place(lease=lease, base=base, links=links, scratch=scratch, git=git), plan


def _sandboxed(ctx: RunContext, worktree: Worktree, plan: ScopePlan) -> tuple[Path, ...]:
    """The folders that the sandbox will let be written, where it prevents all else."""
    held = ctx.machine.prevents and plan.enforcement is Enforcement.PREVENTED
    return (worktree.slot, *plan.writable_roots) if held and plan.visible is None else ()


def _link_submodules(ctx: RunContext, worktree: Worktree, scope: Scope) -> tuple[Path, ...]:
    """Let submodules lead to the person's checkouts. Raises `Unsupported` for one in the scope."""
    paths = ctx.base.submodules if ctx.base is not None else ()
    for path in paths:
        inside = path.removeprefix(ctx.site.prefix)
        if path.startswith(ctx.site.prefix) and scope.permits(inside + b"/file") is None:
            raise Unsupported(
                f"the submodule {show_path(inside)} lies in the task's scope, and work there cannot be"
                " captured: leave it out of allowedFiles, or delegate with it as the workspace"
            )
    return ctx.repo.link_submodules(worktree, paths)


def _hides(plan: ScopePlan) -> bool:
    """Whether something is hidden. What is tracked also lies in the object stores: then there is no git."""
    return bool(plan.hidden_paths or plan.hidden_globs) or plan.visible is not None


def head_of(ctx: RunContext) -> str | None:
    """The person's commit that all trees of this run are built on."""
    return None if ctx.base is None else ctx.base.head


def worker_profile(ctx: RunContext, place: Place, plan: ScopePlan) -> PermissionProfile:
    """The sandbox of one attempt: its scope, and out of sight what is none of a worker's business."""
    hides = _hides(plan)
    where = WorkerPlace(
        worktree=place.root,
        cwd=place.cwd,
        workspace=ctx.site.workspace,
        scratch=(place.scratch,),
        visible=plan.visible,
        shells=() if plan.visible else (place.lease.worktree.slot,),
        binary=ctx.machine.binary.path,
    )
    return build_profile(
        plan,
        where,
        denied=(
            *ctx.machine.home.secrets,
            ctx.house.codex_home,
            ctx.house.state.root,
            *(git_stores(ctx.site) if hides else ()),
        ),
        readable=() if place.git is None else (place.git,),
        session=ctx.session,
        network_hosts=ctx.policy.network.worker_hosts,
    )


def thread_settings(
    ctx: RunContext, record: AttemptRecord, place: Place, profile: PermissionProfile
) -> ThreadSettings:
    """What the worker's thread is started with, and again resumed with."""
    route = route_of(ctx.plan, record)
    environment = worker_environment(
        ctx.house.env,
        ctx.policy.environment.pass_to_workers,
        home=place.scratch / "home",
        tmpdir=place.scratch / "tmp",
        run_id=ctx.run_id,
    )
    instructions = None
    if route.role is not None:
        instructions = role_instructions(*ctx.policy.role(route.role))
    return ThreadSettings(
        cwd=place.cwd,
        model=route.model,
        effort=route.effort,
        profile=profile,
        environment=environment,
        developer_instructions=instructions,
        role=route.role,
        tier=route.tier,
    )
