"""The ladder: each class leads to its documented decision, and every ladder ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.contract.evidence import TurnFailure
from baton.contract.states import FailureClass
from baton.policy.ladder import TABLE, History, Rule, Rung, Trouble, decide, ladder_table
from baton.policy.load import load_policy
from baton.policy.model import Policy
from baton.policy.section import EFFORTS

EVERY = [*FailureClass, *Trouble]
STEPS = ("low", "medium", "high", "xhigh")


def _policy(**escalation: Any) -> Policy:
    policy = load_policy(None, None)
    return policy.model_copy(update={"escalation": policy.escalation.model_copy(update=escalation)})


def _rung(tier: str = "luna", effort: str | None = "medium") -> Rung:
    return Rung(tier, f"gpt-5.6-{tier}", effort)


def _failure(kind: FailureClass, wait: float | None = None) -> TurnFailure:
    return TurnFailure(failure_class=kind, message="said so", retry_after_seconds=wait)


def test_every_class_has_its_row_in_the_table_and_in_the_documentation() -> None:
    assert set(TABLE) == set(EVERY)
    for trouble in EVERY:
        assert f"| `{trouble.value}` |" in ladder_table()


@pytest.mark.parametrize("trouble", [key for key, entry in TABLE.items() if entry.rule is Rule.STOP])
def test_what_no_attempt_can_mend_stops_with_its_reason(trouble: FailureClass | Trouble) -> None:
    decision = decide(trouble, None, History((_rung(),)), _policy(max_steps=9, max_waits=9), STEPS)
    assert (decision.action, decision.trouble, decision.why) == ("stop", trouble.value, TABLE[trouble].why)


def test_effort_comes_first_then_the_tier_then_the_end() -> None:
    policy = _policy(max_steps=9)
    tried = [_rung("luna", "low")]
    told = []
    for steps in range(9):
        decision = decide(Trouble.CHECK_FAILED, None, History(tuple(tried), steps), policy, STEPS)
        if decision.action == "stop":
            break
        tier = decision.tier or tried[-1].tier
        tried.append(_rung(tier, decision.effort))
        told.append((tier, decision.effort))
    assert told == [
        ("luna", "medium"),
        ("luna", "high"),
        ("terra", "medium"),
        ("terra", "high"),
        ("sol", "high"),
    ]
    assert decision.why.endswith("no higher effort or tier is left within the policy")


def test_spent_steps_stop_and_name_the_next_rung() -> None:
    decision = decide(Trouble.WORKER_FAILED, None, History((_rung(),), steps=1), _policy(), STEPS)
    assert decision.action == "stop"
    assert decision.why.endswith("escalation.max_steps is 1, the next rung would be effort high")


def test_model_without_efforts_goes_to_the_next_tier() -> None:
    decision = decide(Trouble.CHECK_FAILED, None, History((_rung("luna", None),)), _policy(), ())
    assert (decision.action, decision.tier) == ("retry", "terra")


def test_tier_that_the_ladder_does_not_have_stops() -> None:
    decision = decide(Trouble.CHECK_FAILED, None, History((_rung("mine", "high"),)), _policy(), STEPS)
    assert decision.action == "stop"


def test_limit_of_the_rate_waits_as_long_as_the_service_says() -> None:
    failure = _failure(FailureClass.RATE_LIMIT, 7.0)
    decision = decide(FailureClass.RATE_LIMIT, failure, History((_rung(),)), _policy(), STEPS)
    assert (decision.action, decision.wait_seconds) == ("wait", 7.0)


def test_waits_without_a_stated_time_grow_and_are_bounded() -> None:
    policy = _policy(max_waits=5, wait_seconds=40.0)
    waits = [
        decide(FailureClass.OVERLOADED, None, History((_rung(),), waits=count), policy, STEPS).wait_seconds
        for count in range(6)
    ]
    assert waits == [15.0, 30.0, 40.0, 40.0, 40.0, None]


def test_service_that_asks_for_more_than_the_policy_gives_ends_the_task_with_the_time() -> None:
    failure = _failure(FailureClass.RATE_LIMIT, 3_700.0)
    decision = decide(FailureClass.RATE_LIMIT, failure, History((_rung(),)), _policy(), STEPS)
    assert decision.action == "stop"
    assert decision.why.endswith("longer than escalation.wait_seconds; come back in 1 h 1 min")


def test_usage_limit_stops_with_the_time_to_come_back() -> None:
    failure = _failure(FailureClass.USAGE_LIMIT, 1_260.0)
    decision = decide(FailureClass.USAGE_LIMIT, failure, History((_rung(),)), _policy(), STEPS)
    assert decision.why == "the account's usage limit is reached; come back in 21 min"


def test_no_other_model_takes_over_unless_the_policy_says_so() -> None:
    history, others = History((_rung(),)), ("gpt-6-luna", "gpt-5.6-luna")
    kept = decide(FailureClass.UNKNOWN_MODEL, None, history, _policy(), STEPS, others)
    assert kept.action == "stop"
    assert "candidates: gpt-6-luna (escalation.other_model is off)" in kept.why
    free = decide(FailureClass.UNKNOWN_MODEL, None, history, _policy(other_model=True), STEPS, others)
    assert (free.action, free.model) == ("retry", "gpt-6-luna")
    none = decide(FailureClass.UNKNOWN_MODEL, None, history, _policy(other_model=True), STEPS, ())
    assert none.action == "stop"


@given(
    st.lists(st.sampled_from(EVERY), min_size=60, max_size=60),
    st.sampled_from(["luna", "terra", "sol"]),
    st.sampled_from(EFFORTS),
    st.integers(0, 10),
    st.integers(0, 10),
)
def test_every_ladder_ends_within_its_steps_and_waits(
    troubles: list[FailureClass | Trouble], tier: str, effort: str, steps: int, waits: int
) -> None:
    policy = _policy(max_steps=steps, max_waits=waits, other_model=True)
    tried, climbed, waited = [Rung(tier, "m0", effort)], 0, 0
    for number, trouble in enumerate(troubles):
        failure = _failure(trouble) if isinstance(trouble, FailureClass) else None
        history = History(tuple(tried), climbed, waited)
        decision = decide(trouble, failure, history, policy, EFFORTS, [f"m{number + 1}"])
        if decision.action == "stop":
            break
        if decision.action == "wait":
            waited += 1
            continue
        climbed += 1
        last = tried[-1]
        rung = Rung(decision.tier or last.tier, decision.model or last.model, decision.effort or last.effort)
        assert rung not in tried
        tried.append(rung)
    assert climbed <= steps and waited <= waits
    assert decision.action == "stop"
