"""Runs a task's checks on a clean checkout of one tree."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from baton.contract.evidence import CheckResult
from baton.engine.blocking import blocking
from baton.engine.context import RunContext
from baton.engine.isolation import head_of
from baton.ledger.records import ArtifactRef
from baton.verify.check import run_check
from baton.verify.command import read_command
from baton.verify.place import CheckEnvironment, CheckLimits, CheckPlace, CheckSandbox
from baton.workspace.dependencies import may_be_linked
from baton.workspace.pool import Lease, WorktreePool
from baton.workspace.worktree_git import give_git

CommandText = str | list[str]


async def run_checks(
    ctx: RunContext,
    commands: Sequence[CommandText],
    commit: str,
    task_id: str | None = None,
    attempt: int | None = None,
    told: Callable[[CheckResult], None] | None = None,
) -> list[CheckResult]:
    """Run commands one after another on a checkout of `commit`; every output is kept.

    Each result is recorded with the run, or given to `told` where no run is on record. They share the
    checkout, as they would for a person, but each has a home and temporary folder of its own. Ends early when
    the run is told to stop.
    """
    checkout = await blocking(_check_out, ctx, commit)
    lease, links, git = checkout.lease, checkout.links, checkout.git
    scratch = Path(tempfile.mkdtemp(dir=ctx.scratch, prefix="check-"))
    results: list[CheckResult] = []
    held = False
    try:
        for number, text in enumerate(commands, start=1):
            if ctx.stop.asked:
                break
            place = CheckPlace(
                tree=ctx.repo.tree_of(commit),
                worktree=lease.worktree.root,
                cwd=lease.worktree.cwd,
                scratch=scratch / str(number),
                person_root=ctx.site.root,
                shared=tuple(Path(os.path.realpath(link)) for link in links if link.is_symlink()),
                modules=checkout.modules,
                readable=() if git is None else (git,),
                shells=(lease.worktree.slot,),
            )
            result = await run_check(
                read_command(text),
                place,
                _environment(ctx),
                sandbox=_sandbox(ctx),
                limits=_limits(ctx),
                artifacts=ctx.house.artifacts,
            )
            results.append(result)
            if told is None:
                _record(ctx, result, number, task_id, attempt)
            else:
                told(result)
        held = all(result.sandboxed for result in results)
    finally:
        await blocking(_leave, lease, scratch, held)
    return results


@dataclass(frozen=True)
class _Checkout:
    """A clean checkout, and what was put into it or beside it."""

    lease: Lease
    links: tuple[Path, ...]
    modules: tuple[Path, ...]
    git: Path | None


def _check_out(ctx: RunContext, commit: str) -> _Checkout:
    lease = WorktreePool(ctx.repo, ctx.house.state).lease(commit)
    try:
        dependencies = ctx.policy.dependencies
        made = ctx.repo.link_dependencies(lease.worktree, dependencies.folders, dependencies.mode)
        if ctx.base is not None and ctx.base.submodules:
            made += ctx.repo.link_submodules(lease.worktree, ctx.base.submodules)
        git = give_git(ctx.repo, lease.worktree, commit, head_of(ctx))
        modules = may_be_linked(ctx.repo, lease.worktree, commit, made, "node_modules")
        lease.prepared(one_at_a_time=True)
    except BaseException:
        lease.give_back()
        raise
    return _Checkout(lease, made, modules, git)


def _leave(lease: Lease, scratch: Path, held: bool) -> None:
    """`held`: a sandbox held everything that ran there, to its end."""
    if not held:
        lease.distrust()
    lease.give_back()
    shutil.rmtree(scratch, ignore_errors=True)


def _environment(ctx: RunContext) -> CheckEnvironment:
    return CheckEnvironment(
        base=ctx.house.env,
        extra_names=ctx.policy.environment.pass_to_checks,
        unsandboxed=ctx.policy.checks.unsandboxed,
        run_id=ctx.run_id,
    )


def _sandbox(ctx: RunContext) -> CheckSandbox | None:
    if not ctx.machine.probe.runs:
        return None
    return CheckSandbox(
        binary=ctx.machine.binary,
        home=ctx.machine.home,
        denied=(
            *ctx.machine.home.secrets,
            ctx.house.codex_home,
            ctx.house.state.root,
            *ctx.session.denied_paths,
        ),
        denied_globs=ctx.session.denied_globs,
        loopback=ctx.machine.probe.loopback,
        direct=ctx.machine.probe.direct,
    )


def _limits(ctx: RunContext) -> CheckLimits:
    return CheckLimits(
        seconds=ctx.policy.deadlines.check_seconds,
        memory_bytes=ctx.policy.limits.check_memory_bytes,
        output_bytes=ctx.policy.limits.check_output_bytes,
    )


def _record(
    ctx: RunContext, result: CheckResult, number: int, task_id: str | None, attempt: int | None
) -> None:
    with ctx.house.ledger.transaction(durable=False):
        if result.output is not None:
            ctx.house.ledger.refer_to_artifact(
                ArtifactRef(
                    run_id=ctx.run_id,
                    name=f"check-{number}",
                    artifact=result.output,
                    task_id=task_id,
                    attempt=attempt,
                    size=result.output_bytes,
                )
            )
        ctx.note("check", task_id, attempt, command=result.command, status=result.status.value)
