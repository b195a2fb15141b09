"""Starts a workflow: everything is checked and resolved first, and nothing is spent."""

from __future__ import annotations

import os
from pathlib import Path

from baton.consult.outgoing import is_code, prose
from baton.consult.plan import workspace_of
from baton.contract.errors import InvalidInput, NotAllowed
from baton.contract.workflow import WorkflowCall
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.engine.machine import bounds_of
from baton.ledger.ids import new_workflow_id
from baton.ledger.workflow_records import WorkflowRecord
from baton.policy.load import load_policy
from baton.policy.model import Policy
from baton.process.there import is_folder
from baton.verify.command import read_command
from baton.workflow.doors import Doors
from baton.workflow.ground import SHOWN, Ground, out_of_scope
from baton.workflow.history import Job
from baton.workflow.terms import Resolver, Terms, policy_terms, wanted_bindings


async def start(doors: Doors, call: WorkflowCall) -> Job:
    """Record a workflow. Raises `BatonError` with the reason for what cannot be."""
    if call.goal is None:
        raise InvalidInput("goal: say what is to be reached")
    folder = workspace_of(call.workspace, doors.session)
    if folder is None:
        raise InvalidInput("workspace: the session has no folder; give its absolute path")
    policy = policy_for(doors.house, folder)
    _check_place(doors, policy, folder)
    tests = list(call.tests or policy.workflow.tests)
    for command in tests:
        read_command(command)
    # Patterns that cannot be read are refused here and not when something was spent.
    out_of_scope([], call.allowed_files)
    wanted = wanted_bindings(policy, call.preset, call.bindings, has_tests=bool(tests))
    resolver = Resolver(doors.consulting, doors.engine, policy, doors.session, str(folder))
    bound = await resolver.resolve(wanted, call.allowed_files, {})
    terms = Terms(
        bindings=bound,
        tests=tests,
        allowed_files=call.allowed_files,
        context_paths=call.context_paths,
        preset=call.preset,
        **policy_terms(policy),
    )
    return await blocking(_record, doors, call, folder, terms)


def policy_for(house: House, folder: Path | None) -> Policy:
    """The policy in force. Raises `NotAllowed` while workflows or what they need are switched off."""
    policy = load_policy(house.codex_home, folder)
    file = house.codex_home / "baton" / "policy.toml"
    for name in ("workflow", "consult", "review"):
        if not getattr(policy, name).enabled:
            what = "workflows are" if name == "workflow" else f"workflows need [{name}], which is"
            raise NotAllowed(f"{what} switched off; the person sets [{name}] enabled = true in {file}")
    if not policy.consult.store_full_content:
        raise NotAllowed(
            "a workflow is its plans, patches and reports, and consult.store_full_content = false keeps no"
            " text; set it to true"
        )
    return policy


def _check_place(doors: Doors, policy: Policy, folder: Path) -> None:
    roots = []
    for root in policy.workflow.roots:
        named = doors.session.cwd if root == "." else os.path.expanduser(root)  # noqa: PTH111
        if named is None:
            continue
        path = Path(named)
        if not path.is_absolute() or not is_folder(path):
            raise InvalidInput(
                f"workflow.roots: {root!r} is not the absolute path of a folder; mend it in the policy"
            )
        real = path.resolve()
        if real != Path(real.anchor):
            roots.append(real)
    if not any(folder.is_relative_to(root) for root in roots):
        raise NotAllowed(f"workspace: {folder} is in none of the folders of workflow.roots")
    if not bounds_of(doors.session, doors.house.env).may_read(folder):
        raise NotAllowed(f"workspace: this session may not read {folder}")


def _record(doors: Doors, call: WorkflowCall, folder: Path, terms: Terms) -> Job:
    goal = str(call.goal)
    workflow_id = new_workflow_id()
    ground = Ground.open(doors.house, folder, workflow_id)
    dirty = ground.dirty()
    if dirty and not call.allow_dirty:
        raise InvalidInput(
            f"workspace: {', '.join(dirty[:SHOWN])} differ from HEAD; commit them, or start with"
            f" {doors.words.argument('allowDirty')}"
        )
    base = ground.snapshot("start")
    workflow = WorkflowRecord(
        workflow_id=workflow_id,
        workspace=str(folder),
        repo_key=ground.site.key,
        goal=goal if is_code(goal) else prose(goal)[0],
        terms=terms.wire(compact=False),
        base=base.commit,
        base_head=base.head,
        session=doors.session.wire(),
    )
    doors.house.ledger.begin_workflow(workflow)
    return Job.read(doors.house, workflow_id)
