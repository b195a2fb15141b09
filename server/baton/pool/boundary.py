"""What a job may touch: its scope in its own directory, as a sandbox profile and settings of a thread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from baton.codex.profile import WorkerPlace, build_profile
from baton.codex.settings import ThreadSettings
from baton.contract.errors import Unsupported
from baton.contract.scope import ScopePlan
from baton.contract.states import ChangeIntent, Enforcement
from baton.contract.task import Task
from baton.pool.context import PoolContext
from baton.pool.jobs import Job
from baton.process.environment import worker_environment
from baton.workspace.scope import Scope, read_scope
from baton.workspace.scope_plan import PlanLimits, plan_scope


@dataclass(frozen=True)
class JobBoundary:
    """How one attempt is held."""

    settings: ThreadSettings
    plan: ScopePlan
    notices: tuple[str, ...]
    """What the sandbox cannot hold, one line each."""


def job_scope(job: Job) -> Scope:
    """The compiled scope. Raises `InvalidInput` for a pattern that cannot be one."""
    patterns = list(job.scope)
    intent = ChangeIntent.OPTIONAL if patterns else ChangeIntent.FORBIDDEN
    return read_scope(Task(objective=job.id, allowed_files=patterns, change_intent=intent))


def job_plan(job: Job, limits: PlanLimits | None = None) -> ScopePlan:
    """How a sandbox holds the job's scope; reads directories, changes nothing."""
    return plan_scope(job_scope(job), job.workdir, limits)


def are_apart(one: ScopePlan, others: Iterable[ScopePlan]) -> bool:
    """Whether the sandbox of a writer keeps it out of everything that the others may write, and them out of
    its own: no writable directory of one lies in one of another. Pure."""
    return not any(
        mine.is_relative_to(theirs) or theirs.is_relative_to(mine)
        for other in others
        for mine in one.write_dirs
        for theirs in other.write_dirs
    )


def bound(ctx: PoolContext, job: Job, scratch: Path) -> JobBoundary:
    """Make the folders that the attempt needs, and the settings that its thread is started with.

    What was made in the person's directory is the pool's to remove: `PoolContext.made`.

    Raises `Unsupported` when the policy demands prevention and the sandbox here cannot give it,
    `InvalidInput` for a scope that leads out of the directory.
    """
    policy = ctx.policy(job.workdir)
    plan = job_plan(job, PlanLimits(siblings=policy.limits.scope_siblings))
    if policy.enforcement.require_prevention and not (
        ctx.machine.prevents and plan.enforcement is Enforcement.PREVENTED
    ):
        why = ctx.machine.why_detected or plan.why_detected
        raise Unsupported(f"job {job.id}: its scope cannot be held by the sandbox here: {why}")
    ctx.made.make(job.id, plan)
    for folder in (scratch / "home", scratch / "tmp"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = WorkerPlace(
        worktree=job.workdir,
        cwd=job.workdir,
        workspace=job.workdir,
        scratch=(scratch,),
        binary=ctx.machine.binary.path,
    )
    profile = build_profile(
        plan,
        place,
        denied=(*ctx.machine.home.secrets, ctx.house.codex_home, ctx.house.state.root),
        network_hosts=policy.network.worker_hosts,
    )
    environment = worker_environment(
        ctx.house.env,
        policy.environment.pass_to_workers,
        home=scratch / "home",
        tmpdir=scratch / "tmp",
        run_id=ctx.pool_id,
    )
    settings = ThreadSettings(
        cwd=job.workdir,
        model=job.route.model,
        effort=job.route.effort,
        profile=profile,
        environment=environment,
        tier=job.tier,
    )
    why = ctx.machine.why_detected or plan.why_detected
    return JobBoundary(settings, plan, (*profile.not_held, *((why,) if why and job.writes else ())))
