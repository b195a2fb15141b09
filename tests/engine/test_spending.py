"""Costs: exact where everything is known, unknown everywhere else, never zero by accident."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.contract.evidence import Usage
from baton.engine.spending import cost
from baton.policy.routing_rules import Price

PRICE = Price(input=2.0, cached_input=0.5, output=10.0)


def test_cost_counts_cached_input_apart() -> None:
    usage = Usage(input_tokens=1_000_000, cached_input_tokens=400_000, output_tokens=100_000)
    assert cost(usage, PRICE) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10)


@pytest.mark.parametrize(
    ("usage", "price"),
    [
        (Usage(), PRICE),
        (Usage(input_tokens=1, output_tokens=1), PRICE),
        (Usage(input_tokens=1, cached_input_tokens=0), PRICE),
        (Usage(input_tokens=1, cached_input_tokens=0, output_tokens=1), None),
    ],
)
def test_what_is_not_known_in_full_has_no_cost(usage: Usage, price: Price | None) -> None:
    assert cost(usage, price) is None


def test_nothing_spent_costs_nothing_whatever_the_price() -> None:
    assert cost(Usage(input_tokens=0, cached_input_tokens=0, output_tokens=0), None) == 0.0


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_cost_is_never_negative(given_tokens: int, cached: int, written: int) -> None:
    usage = Usage(input_tokens=max(given_tokens, cached), cached_input_tokens=cached, output_tokens=written)
    known = cost(usage, PRICE)
    assert known is not None and known >= 0
