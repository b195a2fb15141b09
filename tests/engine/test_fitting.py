"""What lands when not everything goes together: always something that passed, within the rounds allowed."""

from __future__ import annotations

import anyio
from hypothesis import given
from hypothesis import strategies as st

from baton.engine.fitting import Fit, find_fit

CHECK = "make test"


def fit_of(names: list[str], broken: set[frozenset[str]], rounds: int) -> tuple[Fit, list[list[str]]]:
    """Find a fit where a selection fails that holds one of the `broken` sets; what passed on the way."""
    passed: list[list[str]] = []

    async def try_out(selection: list[str]) -> str | None:
        if any(group <= set(selection) for group in broken):
            return CHECK
        passed.append(list(selection))
        return None

    return anyio.run(find_fit, names, CHECK, try_out, rounds), passed


NAMES = [f"t{number}" for number in range(1, 13)]

GROUPS = st.sets(st.frozensets(st.sampled_from(NAMES), min_size=1, max_size=3), min_size=1, max_size=4)


@given(GROUPS, st.integers(0, 12))
def test_only_what_passed_together_fits_and_every_other_has_a_reason(
    broken: set[frozenset[str]], rounds: int
) -> None:
    fit, passed = fit_of(NAMES, broken, rounds)
    assert fit.rounds <= rounds
    assert fit.fitting == [] or fit.fitting in passed
    assert sorted([*fit.fitting, *fit.left_out]) == sorted(NAMES)
    assert all(fit.left_out.values())


@given(st.sampled_from(NAMES))
def test_a_single_culprit_is_left_out_alone(culprit: str) -> None:
    fit, _ = fit_of(NAMES, {frozenset({culprit})}, 8)
    assert fit.fitting == [name for name in NAMES if name != culprit]
    assert list(fit.left_out) == [culprit]


@given(st.lists(st.sampled_from(NAMES), min_size=2, max_size=2, unique=True))
def test_of_two_that_do_not_go_together_the_first_lands(pair: list[str]) -> None:
    fit, _ = fit_of(NAMES, {frozenset(pair)}, 8)
    assert list(fit.left_out) == [max(pair, key=NAMES.index)]


def test_a_check_that_fails_only_once_decides_nothing() -> None:
    async def try_out(selection: list[str]) -> str | None:
        return None

    fit = anyio.run(find_fit, NAMES, CHECK, try_out)
    assert fit.fitting == NAMES and not fit.left_out and fit.rounds == 1


def test_where_even_one_fails_nothing_is_said_to_fit() -> None:
    fit, _ = fit_of(["a"], {frozenset({"a"})}, 8)
    assert fit.fitting == [] and fit.rounds == 0
    assert CHECK in fit.left_out["a"]
