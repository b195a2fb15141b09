"""A verified result without a model: what a worker would have left, captured, ready to be integrated.

From there on everything is Baton's own: the merge onto the workspace as it is, and the apply.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

from baton.codex.session_profile import UNBOUNDED
from baton.contract.evidence import AttemptResult, Evidence, ScopeEvidence
from baton.contract.states import Enforcement, Integration, RunState, TaskState, Verdict
from baton.contract.task import Task
from baton.engine.blocking import blocking
from baton.engine.context import RunContext
from baton.engine.evidence import shown_changes
from baton.engine.house import House
from baton.engine.integrate import integrate
from baton.engine.life import rest
from baton.engine.machine import Machine
from baton.engine.plan import RunPlan
from baton.engine.stop import Stop
from baton.ledger.ids import new_run_id
from baton.ledger.records import AttemptRecord, RunRecord, TaskRecord
from baton.policy.load import load_policy
from baton.workspace.git import Git
from baton.workspace.limits import Limits
from baton.workspace.locate import locate
from baton.workspace.pool import WorktreePool
from baton.workspace.repository import PrivateRepository

TASK = "t1"


def with_result(house: House, workspace: Path, work: Callable[[Path], object]) -> RunContext:
    """A run whose only task is verified; `work` changes the files of its worktree."""
    git = Git.find(house.env)
    site = locate(workspace, git)
    repo = PrivateRepository.open(house.state, site, Limits(), git)
    plan = RunPlan(routes={})
    run = RunRecord(
        run_id=new_run_id(),
        workspace=str(workspace),
        repo_key=site.key,
        state=RunState.RUNNING,
        options=plan.wire(),
    )
    ref = f"refs/runs/{run.run_id}"
    base = repo.snapshot(f"{ref}/base", run.run_id)
    run = run.model_copy(update={"base_commit": base.commit, "head_commit": base.head})
    lease = WorktreePool(repo, house.state).lease(base.commit)
    try:
        work(lease.worktree.cwd)
        capture = repo.capture(
            lease.worktree, base, f"{ref}/tasks/{TASK}/1", house.state.root / "aside" / run.run_id
        )
    finally:
        lease.give_back()
    evidence = Evidence(
        base=base.commit,
        tree=capture.tree,
        commit=capture.commit,
        changes=shown_changes(capture.changes),
        scope=ScopeEvidence(enforcement=Enforcement.PREVENTED),
    )
    task = TaskRecord(
        run_id=run.run_id,
        task_id=TASK,
        position=0,
        state=TaskState.DONE,
        contract=Task(id=TASK, objective="scripted", allowed_files=["**"]),
        verdict=Verdict.VERIFIED,
        result=AttemptResult(attempt=1, verdict=Verdict.VERIFIED, reasons=[], evidence=evidence),
        kept=f"{ref}/tasks/{TASK}/1",
    )
    house.ledger.create_run(run, [task])
    house.ledger.start_attempt(
        AttemptRecord(run_id=run.run_id, task_id=TASK, attempt=1, step="judged", commit=capture.commit)
    )
    return RunContext(
        house=house,
        run=run,
        plan=plan,
        policy=load_policy(house.codex_home, None),
        site=site,
        repo=repo,
        machine=cast(Machine, None),  # without checks nothing of Codex is used
        session=UNBOUNDED,
        stop=Stop(),
        scratch=house.state.scratch / run.run_id,
    )


async def land(ctx: RunContext) -> Integration:
    """Integrate the result; what became of it."""
    task = ctx.house.ledger.task(ctx.run_id, TASK)
    done = await integrate(ctx, [task])
    await blocking(rest, ctx)
    return done
