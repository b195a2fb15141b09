"""Advice through the door: shown before any work, recorded with the run, refusing nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from baton.contract.errors import InvalidInput
from baton.engine.plan import RunPlan
from baton.simulate.workers import idle_answer, report, write
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

SMALL = {"sizeLines": 8, "seams": "clear"}
ROOT = "control-plane: edit no file yourself"
LARGE = {"sizeLines": 400, "seams": "clear", "verification": "command"}


@pytest.fixture
def call(workspace: Callable[..., Workspace]) -> dict[str, Any]:
    folder = workspace({"a.txt": "seed\n"})
    return {"workspace": str(folder.path), "objective": "<none>", "allowedFiles": ["a.txt"]}


def _recorded(sim: Sim, run_id: str) -> RunPlan:
    return RunPlan.model_validate(sim.run(run_id).options)


def test_a_dry_run_shows_the_advice_with_its_reasons(sim: Sim, call: dict[str, Any]) -> None:
    small = sim.delegate({**call, "facts": SMALL, "dryRun": True})
    assert small["advice"]["choice"] == "solo"
    assert small["advice"]["reasons"][0].startswith("about 8 lines")
    large = sim.delegate({**call, "facts": LARGE, "dryRun": True})
    assert large["advice"]["choice"] == "delegate"
    assert "advice" not in sim.delegate({**call, "dryRun": True})
    with sim.policy("[root]\nmode = 'control-plane'\n"):
        assert sim.delegate({**call, "facts": SMALL, "dryRun": True})["advice"]["choice"] == "delegate"


def test_advice_is_recorded_and_refuses_nothing_and_a_result_tells_only_solo(
    sim: Sim, call: dict[str, Any]
) -> None:
    for facts, told in ((SMALL, True), (LARGE, False)):
        objective = sim.script(f"advised {told}", write("a.txt", "x\n"), report(files=["a.txt"]))
        answer = sim.delegate({**call, "objective": objective, "facts": facts, "waitSeconds": 100})
        plan = _recorded(sim, answer["runId"])
        assert plan.facts is not None and plan.facts.wire() == facts
        assert plan.advice is not None and plan.advice.choice == ("solo" if told else "delegate")
        assert answer.get("advice", "").startswith("solo: about 8 lines") is told
        assert answer["verdict"] == "unverified"


def test_root_mode_of_a_project_is_followed_by_all_that_is_told(
    sim: Sim, call: dict[str, Any], workspace: Callable[..., Workspace]
) -> None:
    narrowed = workspace({"a.txt": "seed\n", ".codex/baton.toml": "[root]\nmode = 'control-plane'\n"})
    strict = {**call, "workspace": str(narrowed.path), "facts": SMALL}
    planned = sim.delegate({**strict, "dryRun": True})
    assert (planned["root"], planned["advice"]["choice"]) == (ROOT, "delegate")
    answer = sim.delegate({**strict, "objective": sim.script("strict", *idle_answer()), "waitSeconds": 100})
    assert (answer["verdict"], answer["root"]) == ("no_change", ROOT)
    assert "yourself" not in answer["next"] and "advice" not in answer
    assert sim.inspect(answer["runId"], "handoff")["root"] == ROOT
    usual = sim.delegate({**call, "objective": sim.script("usual", *idle_answer()), "waitSeconds": 100})
    assert "root" not in usual and usual["next"].endswith(", or do it yourself")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"size_lines": 3}, "facts.size_lines: unknown key; did you mean 'sizeLines'?"),
        ({"seams": "good"}, "facts.seams: input should be 'clear', 'partial' or 'none'"),
        ({"sizeLines": -1}, "facts.sizeLines: "),
    ],
)
def test_bad_facts_are_one_line(sim: Sim, call: dict[str, Any], facts: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        sim.delegate({**call, "facts": facts})
    assert why in caught.value.message
