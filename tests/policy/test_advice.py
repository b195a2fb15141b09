"""Advice: the facts of a piece of work, and what they speak for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.contract.advice import Choice, Facts, Fit, Proof, Seams
from baton.policy.advice import advise
from baton.policy.load import load_policy
from baton.policy.routing_rules import Root

POLICY = load_policy(None, None)
ADAPTIVE = Root(mode="adaptive")


def _choice(facts: Facts, *, tasks: int = 1, checks: bool = False) -> Choice:
    return advise(facts, POLICY.advice, ADAPTIVE, tasks=tasks, checks=checks).choice


@pytest.mark.parametrize(
    ("facts", "checks", "expected"),
    [
        (Facts(size_lines=10, seams=Seams.CLEAR), True, Choice.SOLO),
        (Facts(size_lines=30), False, Choice.SOLO),
        (Facts(size_lines=80, seams=Seams.CLEAR), True, Choice.DELEGATE),
        (Facts(seams=Seams.CLEAR, verification=Proof.COMMAND), False, Choice.DELEGATE),
        (Facts(size_lines=80, seams=Seams.CLEAR), False, Choice.EITHER),
        (Facts(size_lines=80, seams=Seams.NONE), False, Choice.SOLO),
        (Facts(size_lines=80, shared_state=True), False, Choice.SOLO),
        (Facts(size_lines=80, shared_state=True, seams=Seams.CLEAR), True, Choice.EITHER),
        (Facts(size_lines=80, integration=Fit.HARD), True, Choice.SOLO),
        (Facts(size_lines=80, verification=Proof.NONE), False, Choice.SOLO),
        (Facts(size_lines=400), False, Choice.DELEGATE),
        (Facts(size_lines=400, seams=Seams.NONE), False, Choice.EITHER),
        (Facts(), False, Choice.EITHER),
    ],
)
def test_facts_lead_to_the_documented_choice(facts: Facts, checks: bool, expected: Choice) -> None:
    assert _choice(facts, checks=checks) is expected


@given(st.builds(Facts), st.integers(1, 9), st.booleans())
def test_advice_always_has_a_reason(facts: Facts, tasks: int, checks: bool) -> None:
    advice = advise(facts, POLICY.advice, ADAPTIVE, tasks=tasks, checks=checks)
    assert advice.reasons and all(advice.reasons)
    assert advice == advise(facts, POLICY.advice, ADAPTIVE, tasks=tasks, checks=checks)


@given(st.builds(Facts), st.integers(1, 9))
def test_a_root_that_edits_nothing_is_never_told_to_do_it_itself(facts: Facts, tasks: int) -> None:
    advice = advise(facts, POLICY.advice, Root(mode="control-plane"), tasks=tasks, checks=False)
    assert advice.choice is Choice.DELEGATE


def test_thresholds_are_the_policys() -> None:
    rules = POLICY.advice.model_copy(update={"solo_lines": 500, "delegate_lines": 1000})
    advice = advise(Facts(size_lines=400), rules, ADAPTIVE, tasks=1, checks=True)
    assert advice.choice is Choice.SOLO
    assert "about 400 lines" in advice.reasons[0]
