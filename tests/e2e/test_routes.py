"""Whom a task goes to: a person's own roles, and efforts as a model has them, as it was really asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from baton.contract.errors import InvalidInput
from baton.simulate.workers import idle_answer
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

OWN = """
[roles.property-tester]
description = "Writes property tests."
tier = "terra"
effort = "high"
change_intent = "required"
template = "worker"
instructions = "State the law before you write the test."
"""


@pytest.fixture
def call(workspace: Callable[..., Workspace]) -> dict[str, Any]:
    folder = workspace({"a.txt": "seed\n"})
    return {
        "workspace": str(folder.path),
        "objective": "<none>",
        "allowedFiles": ["a.txt"],
        "waitSeconds": 100,
    }


def _asked(sim: Sim, run_id: str) -> tuple[str, str | None, str]:
    """Model, effort and text of the first request of the run's worker."""
    first = sim.model.requests_of(str(sim.result(run_id).thread_id))[0]
    return first.model, first.effort, str(first.body)


def test_role_of_a_person_has_its_model_its_effort_and_its_own_words(
    sim: Sim, call: dict[str, Any], workspace: Callable[..., Workspace]
) -> None:
    with sim.policy(OWN):
        mine = sim.delegate(
            {**call, "role": "property-tester", "objective": sim.script("mine", *idle_answer())}
        )
        narrowed = workspace({".codex/baton.toml": "[roles.property-tester]\neffort = 'low'\n"})
        less = sim.delegate(
            {
                **call,
                "workspace": str(narrowed.path),
                "role": "property-tester",
                "objective": sim.script("narrowed", *idle_answer()),
            }
        )
        with pytest.raises(
            InvalidInput, match="role: no role 'property-testr'; did you mean 'property-tester'"
        ):
            sim.delegate({**call, "role": "property-testr"})
    model, effort, text = _asked(sim, mine["runId"])
    assert model.endswith("-terra") and effort == "high"
    assert "State the law before you write the test." in text
    assert mine["route"] == {"model": model, "effort": "high"}
    assert _asked(sim, less["runId"])[:2] == (model, "low")


def test_effort_that_the_model_lacks_is_replaced_by_the_nearest_lower_one_and_the_result_says_so(
    sim: Sim, call: dict[str, Any]
) -> None:
    asked = {**call, "effort": "ultra", "effortReason": "to see", "waitSeconds": 100}
    planned = sim.delegate({**asked, "dryRun": True})
    answer = sim.delegate({**asked, "objective": sim.script("ultra", *idle_answer())})
    assert planned["notes"] == answer["notes"]
    assert answer["notes"] == ["t1: effort ultra would make the worker delegate; max is used"]
    assert answer["route"]["effort"] == "max"
    worker = str(sim.result(answer["runId"]).thread_id)
    assert {request.effort for request in sim.model.requests_of(worker)} == {"max"}
