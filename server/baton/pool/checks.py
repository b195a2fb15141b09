"""A job's verification commands: run where it worked, in a sandbox that may write no more than it might."""

from __future__ import annotations

import shutil
from pathlib import Path

from baton.contract.evidence import CheckResult, CheckStatus
from baton.engine.blocking import blocking
from baton.pool.boundary import job_plan
from baton.pool.context import PoolContext
from baton.pool.jobs import Job
from baton.verify.check import run_check
from baton.verify.command import read_command
from baton.verify.place import CheckEnvironment, CheckLimits, CheckPlace, CheckSandbox

HERE = "working directory"
"""What stands for the id of a tree: a pool's job works on the person's own files."""


async def run_job_checks(ctx: PoolContext, job: Job, scratch: Path) -> list[CheckResult]:
    """Run the commands one after another until one does not pass; every output is kept as an artifact.

    Raises `BatonError` when they cannot be run for reasons of Baton's own surroundings.
    """
    policy = ctx.policy(job.workdir)
    sandbox = None
    if ctx.machine.probe.runs:
        sandbox = CheckSandbox(
            binary=ctx.machine.binary,
            home=ctx.machine.home,
            denied=(*ctx.machine.home.secrets, ctx.house.codex_home, ctx.house.state.root),
            loopback=ctx.machine.probe.loopback,
            direct=ctx.machine.probe.direct,
        )
    plan = await blocking(job_plan, job)
    results: list[CheckResult] = []
    try:
        for number, command in enumerate(job.verification_commands, start=1):
            place = CheckPlace(
                tree=HERE,
                worktree=job.workdir,
                cwd=job.workdir,
                scratch=scratch / f"check-{number}",
                person_root=job.workdir,
                writable=plan.write_dirs,
            )
            result = await run_check(
                read_command(command),
                place,
                CheckEnvironment(
                    base=ctx.house.env,
                    extra_names=policy.environment.pass_to_checks,
                    unsandboxed=policy.checks.unsandboxed,
                    run_id=ctx.pool_id,
                ),
                sandbox=sandbox,
                limits=CheckLimits(
                    seconds=policy.deadlines.check_seconds,
                    memory_bytes=policy.limits.check_memory_bytes,
                    output_bytes=policy.limits.check_output_bytes,
                ),
                artifacts=ctx.house.artifacts,
            )
            results.append(result)
            if result.status is not CheckStatus.PASSED:
                break
    finally:
        await blocking(shutil.rmtree, scratch, ignore_errors=True)
    return results
