"""Who a step is routed to by which score, and what earlier answers and ceilings mean for one."""

from __future__ import annotations

from contextlib import suppress

import pytest

from baton.contract.errors import SpendLimit
from baton.contract.workflow import CAPABILITIES, Step
from baton.workflow.history import Job
from workflow.conftest import POLICY, Desk
from workflow.driven import said


def test_each_step_is_routed_by_the_score_for_its_own_kind_of_work(desk: Desk) -> None:
    words = {step: "patch" if step in (Step.IMPLEMENT, Step.FIX) else "ask" for step in CAPABILITIES}
    desk.start(bindings=words)
    bound = Job.read(desk.house, desk.id).terms.bindings
    why = {step.value: bound[step].parties[0].why or "" for step in CAPABILITIES}
    kinds = {
        "research": "research",
        "plan": "planning",
        "brief": "prompt_authoring",
        "implement": "coding",
        "fix": "coding",
        "review": "review",
        "synthesise": "synthesis",
    }
    assert {step: text.split()[0] for step, text in why.items()} == kinds, why


def test_a_refusal_at_a_ceiling_leaves_the_token_as_it_was(desk: Desk) -> None:
    desk.script.says("codex", said("Turn the sign."))
    told = desk.start(bindings={"plan": "ask:codex", "brief": "ask:codex", "review": "ask:opencode"})
    told = desk.call("next", confirm=told["confirm"])
    desk.add_policy("[consult.spend]\nmax_turns_per_day = 1\n")
    assert "max_turns_per_day" in desk.refuses("next", confirm=told["confirm"]).message
    assert len(desk.script.prompts("codex")) == 1
    desk.policy.write_text(POLICY)
    assert desk.call("next", confirm=told["confirm"])["state"] == "implement"
    assert len(desk.script.prompts("codex")) == 2


def test_where_nobody_can_review_each_agent_has_its_reason_in_one_line(desk: Desk) -> None:
    for name in ("claude", "antigravity"):
        desk.add_policy(f"[consult.agents.{name}]\nenabled = false\n")
    made = {"implement": "patch:codex", "fix": "patch:opencode", "review": "ask"}
    told = desk.refuses("start", goal="g", bindings=made).message
    assert told.startswith("review: no agent can be asked for review (") and told.endswith(")")
    for name in ("codex", "opencode"):
        assert told.count(f"{name}: it cannot be told apart from") == 1
    assert len(told) <= 300


@pytest.mark.long
def test_an_estimate_needs_three_prices_and_warns_of_a_ceiling(desk: Desk) -> None:
    desk.script.says("codex", {**said("Turn the sign."), "cost": 0.5})
    desk.add_policy("[workflow.spend]\nmax_cost_per_workflow = 0.4\n")
    for known in range(3):
        told = desk.start()
        assert told["due"]["estimate"]["basisTurns"] == known
        assert told["due"]["estimate"]["costUsd"] is None and "ceilingWarning" not in told["due"]
        # The answer is taken in; that the next step is beyond the ceiling is said of that step.
        with suppress(SpendLimit):
            desk.call("next", confirm=told["confirm"])
    told = desk.start()
    assert (told["due"]["estimate"]["basisTurns"], told["due"]["estimate"]["costUsd"]) == (3, 0.5)
    assert "0.40 US dollars" in told["due"]["ceilingWarning"]


def test_its_rules_stay_those_of_its_start(desk: Desk) -> None:
    desk.start(bindings={"review": "ask:opencode"})
    moved = "[workflow]\nmax_fix_rounds = 1\nadvance_on_failed_test = true\n"
    desk.policy.write_text(POLICY.replace("[workflow]\n", moved))
    assert desk.call("status")["round"] == "0 of 5"
    desk.call("record", step="plan", text="p")
    desk.call("record", step="brief", text="b")
    (desk.folder / "calc.py").write_text("def add(a, b):\n    return b + a\n")
    desk.call("record", step="implement")
    told = desk.call("record", step="test", report={"command": "c", "exitCode": 1})
    assert (told["state"], told["round"]) == ("fix", "1 of 5"), told
