"""Answers that are too long: the largest parts give way, nothing else."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from baton.engine.shorten import MAX_ANSWER, SHORTENED, fit, size

_TEXT = st.text(max_size=60)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(_TEXT, inner, max_size=8),
    max_leaves=60,
)
_ANSWER = st.dictionaries(st.text(min_size=1, max_size=10), _VALUE, min_size=1, max_size=8)


@settings(deadline=None, max_examples=30)
@given(_ANSWER)
def test_a_short_answer_is_left_as_it_is(answer: dict[str, Any]) -> None:
    assert fit(answer, size(answer)) is answer


@settings(deadline=None, max_examples=25)
@given(_ANSWER, st.text(min_size=1, max_size=5), st.integers(1, 200))
def test_a_long_answer_keeps_its_keys_and_says_so(answer: dict[str, Any], piece: str, times: int) -> None:
    long = {**answer, "long": [piece * times] * 100, "text": piece * 20_000}
    short = fit(long)
    assert size(short) <= max(MAX_ANSWER, size(answer) + 1_000)
    assert short.keys() == {*long, SHORTENED}
    assert short["text"][:3] == long["text"][:3]


def test_a_shortened_answer_is_still_one_and_the_original_is_untouched() -> None:
    answer = {"runId": "r1234567", "lists": [["x" * 100] * 50, [1, 2, 3]], "deep": {"text": "y" * 9_000}}
    before = json.dumps(answer)
    short = fit(answer, 2_000)
    assert size(short) <= 2_000
    assert short["runId"] == "r1234567"
    assert short["lists"][1] == [1, 2, 3]
    assert short["deep"]["text"].startswith("yyy") and short["deep"]["text"].endswith("…")
    assert json.dumps(answer) == before


def test_what_cannot_be_halved_ends_all_the_same() -> None:
    answer = {f"key-{number}": "short" for number in range(1_000)}
    assert fit(answer).keys() == {*answer, SHORTENED}
