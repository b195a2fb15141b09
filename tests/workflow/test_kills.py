"""A session killed at any step: the next one goes on, nothing is lost, and nobody is asked twice."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from baton.contract.workflow import StepState
from review.killed import KILLED
from workflow.conftest import Desk
from workflow.driven import RIGHT, WRONG, drive, git

TESTS = Path(__file__).parents[1]


def killed_after(commits: int, folder: Path) -> bool:
    """Whether it was killed before it was done."""
    paths = [str(TESTS), str(TESTS.parent / "server")]
    done = subprocess.run(
        [sys.executable, "-B", "-m", "workflow.driven", str(commits), str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode in (0, KILLED), done.stderr
    return done.returncode == KILLED


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


@pytest.mark.long
def test_session_killed_at_every_step_is_gone_on_with(desk: Desk) -> None:
    for commits in itertools.count(1):
        if not killed_after(commits, desk.folder):
            break
        anyio.run(drive, desk.house, desk.folder)
        check_done(desk)
        start_over(desk)
    assert commits >= 20
