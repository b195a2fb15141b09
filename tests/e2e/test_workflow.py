"""Workflows end to end: real Codex processes as agents and workers, scripted answers, real git."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from e2e.sim import Sim, Workspace
from e2e.workflow_desk import (
    MAKER,
    POLICY,
    PROJECT,
    RIGHT,
    WRONG,
    Desk,
    a_patch,
    findings,
    opinion,
)

pytestmark = pytest.mark.codex


@pytest.fixture
def desk(sim: Sim, workspace: Callable[..., Workspace]) -> Iterator[Desk]:
    with sim.policy(POLICY):
        yield Desk(sim, workspace(dict(PROJECT)))


def test_a_delegated_job_is_done_in_eight_calls_and_fifteen_kilobytes(desk: Desk) -> None:
    started = desk.start()
    assert started["state"] == "plan" and started["due"]["by"] == f"ask codex ({MAKER})"
    assert desk.agents.asked == []
    desk.agents.on("plan", opinion("1. Turn the sign in calc.py."))
    desk.agents.on("brief", opinion("In calc.py, add adds."))
    desk.agents.on("implement", a_patch(("calc.py", WRONG, RIGHT)))
    desk.agents.on("review", findings())
    for state in ("brief", "implement", "apply"):
        assert desk.go()["state"] == state, desk.told
    assert desk.project.read("calc.py") == WRONG
    told = desk.call("record", step="apply", commit=desk.apply())
    # The tests were run in the same call: they send nothing.
    assert told["state"] == "review" and "passed (said by baton)" in told["did"][-1], told
    assert desk.go()["state"] == "synthesise", desk.told
    told = desk.call("record", step="synthesise", text="It adds now.")
    assert told["state"] == "completed", told
    assert desk.calls <= 8 and desk.received <= 15_000, (desk.calls, desk.received)
    assert desk.agents.left() == {}
