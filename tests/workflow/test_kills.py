"""A session killed at any step: the next one goes on, nothing is lost, and nobody is asked twice."""

from __future__ import annotations

import itertools
from functools import partial

import anyio
import pytest

from baton.contract.workflow import StepState
from review.killing import killed
from workflow.conftest import Desk
from workflow.driven import RIGHT, WRONG, drive, git

killed_after = partial(killed, "workflow.driven")


def check_done(desk: Desk) -> None:
    """The job is done, and each question was put once."""
    assert (desk.folder / "calc.py").read_text() == RIGHT
    assert len(desk.script.prompts("codex")) == 2
    assert len(desk.script.prompts("opencode")) == 1
    (workflow,) = desk.house.ledger.workflows(-1)
    assert workflow.state.value == "completed"
    steps = desk.house.ledger.workflow_steps(workflow.workflow_id, states=[StepState.DONE])
    done = [step.step.value for step in steps]
    assert done == ["research", "plan", "brief", "implement", "apply", "test", "review", "synthesise"]


def start_over(desk: Desk) -> None:
    for workflow in desk.house.ledger.workflows(-1):
        desk.house.ledger.forget_workflow(workflow.workflow_id)
    git(desk.folder, "reset", "-q", "--hard", git(desk.folder, "rev-list", "--max-parents=0", "HEAD"))
    assert (desk.folder / "calc.py").read_text() == WRONG
    for path in desk.script.root.glob("*.*.*"):
        path.unlink()


def test_session_killed_again_and_again_comes_to_its_end(desk: Desk) -> None:
    kills = 0
    # Ever later, so that each process gets on a little.
    while killed_after(kills + 2, desk.folder):
        kills += 1
        assert kills < 40
    assert kills >= 4
    check_done(desk)


SLICES = 5


@pytest.mark.long
@pytest.mark.parametrize("first", range(1, SLICES + 1))
def test_session_killed_at_every_step_is_gone_on_with(desk: Desk, first: int) -> None:
    """Each slice has every fifth commit to the ledger, so that none takes long."""
    for commits in itertools.count(first, SLICES):
        if not killed_after(commits, desk.folder):
            break
        anyio.run(drive, desk.house, desk.folder)
        check_done(desk)
        start_over(desk)
    assert commits >= 20
