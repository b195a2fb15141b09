"""Routes: from role, tier and effort to what the installed Codex has."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from baton.contract.catalogue import ModelEntry
from baton.contract.errors import InvalidInput
from baton.policy.load import load_policy
from baton.policy.model import Policy
from baton.policy.section import EFFORTS
from baton.policy.tiers import DELEGATING_EFFORT, family_of, nearest_effort, plan_route, resolve_tier


@pytest.fixture
def policy() -> Policy:
    return load_policy(None, None)


def _with_tier(policy: Policy, **changes: str) -> Policy:
    luna = policy.tiers["luna"].model_copy(update=changes)
    return policy.model_copy(update={"tiers": {**policy.tiers, "luna": luna}})


def test_latest_is_the_newest_listed_member_of_the_family(
    policy: Policy, catalogue: list[ModelEntry]
) -> None:
    assert resolve_tier(policy, "luna", catalogue).slug == "gpt-6-luna"


def test_versions_compare_as_numbers(policy: Policy, catalogue: list[ModelEntry]) -> None:
    assert resolve_tier(policy, "terra", catalogue).slug == "gpt-6.1-terra"
    older = [entry for entry in catalogue if entry.slug != "gpt-6.1-terra"]
    assert resolve_tier(policy, "terra", older).slug == "gpt-5.10-terra"


def test_pinned_takes_exactly_the_named_model_also_a_hidden_one(
    policy: Policy, catalogue: list[ModelEntry]
) -> None:
    pinned = _with_tier(policy, resolve="pinned")
    assert resolve_tier(pinned, "luna", catalogue).slug == "gpt-5.6-luna"
    hidden = _with_tier(policy, resolve="pinned", pinned="gpt-6.1-luna")
    assert resolve_tier(hidden, "luna", catalogue).slug == "gpt-6.1-luna"


def test_retired_slug_is_refused_with_the_family_as_candidates(
    policy: Policy, catalogue: list[ModelEntry]
) -> None:
    retired = _with_tier(policy, resolve="pinned", pinned="gpt-4-luna")
    with pytest.raises(InvalidInput) as caught:
        resolve_tier(retired, "luna", catalogue)
    assert caught.value.message == (
        "tiers.luna.pinned: the installed Codex has no model 'gpt-4-luna'; "
        "candidates: gpt-6-luna, gpt-5.6-luna"
    )


def test_family_without_a_listed_member_is_refused_with_what_is_listed(
    policy: Policy, catalogue: list[ModelEntry]
) -> None:
    with pytest.raises(InvalidInput, match=r"no model of the family 'nova'; candidates: .*gpt-5\.5"):
        resolve_tier(_with_tier(policy, family="nova", pinned="gpt-5.6-nova"), "luna", catalogue)


def test_empty_catalogue_is_one_clear_line(policy: Policy) -> None:
    with pytest.raises(InvalidInput, match="lists no models"):
        resolve_tier(policy, "luna", [])


@pytest.mark.parametrize(
    ("slug", "family"),
    [("gpt-5.6-luna", "luna"), ("gpt-6-sol", "sol"), ("gpt-5.5", None), ("gpt-daybreak-blue-latest", None)],
)
def test_family_is_the_last_part_of_the_slug(slug: str, family: str | None) -> None:
    assert family_of(slug) == family


def test_default_role_gives_tier_model_and_effort(policy: Policy, catalogue: list[ModelEntry]) -> None:
    plan = plan_route(policy, catalogue, role=None, tier=None, effort=None)
    assert (plan.role, plan.tier, plan.model.slug) == ("luna-worker", "luna", "gpt-6-luna")
    assert (plan.effort.effort, plan.effort.note) == ("medium", None)


def test_tier_alone_uses_its_own_default_effort(policy: Policy, catalogue: list[ModelEntry]) -> None:
    plan = plan_route(policy, catalogue, role=None, tier="terra", effort=None)
    assert (plan.role, plan.effort.effort) == (None, policy.tiers["terra"].default_effort)


def test_named_effort_wins_over_the_roles(policy: Policy, catalogue: list[ModelEntry]) -> None:
    plan = plan_route(policy, catalogue, role="luna-worker", tier=None, effort="xhigh")
    assert plan.effort.effort == "xhigh"


@pytest.mark.parametrize(
    ("role", "tier", "expected"),
    [
        ("luna-worker", "luna", "name one of them"),
        ("luna-workr", None, "no role 'luna-workr'; did you mean 'luna-worker'?"),
        (None, "lune", "no tier 'lune'; did you mean 'luna'?"),
    ],
)
def test_bad_route_is_refused(
    policy: Policy, catalogue: list[ModelEntry], role: str | None, tier: str | None, expected: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan_route(policy, catalogue, role=role, tier=tier, effort=None)
    assert expected in caught.value.message


@pytest.mark.parametrize(
    ("asked", "efforts", "given"),
    [
        ("max", ("low", "medium", "high", "xhigh"), "xhigh"),
        ("high", ("low", "medium", "max"), "medium"),
        ("minimal", ("low", "high"), "low"),
        ("ultra", ("low", "max", "ultra"), "max"),
        ("high", (), None),
        ("high", ("turbo",), "turbo"),
    ],
)
def test_missing_effort_becomes_the_nearest_lower_one_and_is_reported(
    asked: str, efforts: tuple[str, ...], given: str | None
) -> None:
    choice = nearest_effort(asked, ModelEntry(slug="gpt-5.6-luna", efforts=efforts))
    assert (choice.effort, choice.asked) == (given, asked)
    assert choice.note is not None
    assert asked in choice.note


def test_effort_of_a_newer_codex_is_used_when_the_model_has_it() -> None:
    model = ModelEntry(slug="gpt-9-luna", efforts=("low", "turbo"))
    assert nearest_effort("turbo", model).effort == "turbo"


def test_model_that_only_delegates_is_refused() -> None:
    with pytest.raises(InvalidInput, match="gpt-9-sol only has ultra, which would make the worker delegate"):
        nearest_effort("high", ModelEntry(slug="gpt-9-sol", efforts=("ultra",)))


def test_unknown_effort_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="has no effort 'hihg'; did you mean 'high'"):
        nearest_effort("hihg", ModelEntry(slug="gpt-5.6-luna", efforts=("low", "high")))


@given(
    st.sampled_from([*EFFORTS, DELEGATING_EFFORT]), st.sets(st.sampled_from([*EFFORTS, DELEGATING_EFFORT]))
)
def test_given_effort_is_one_of_the_models_and_never_delegates(asked: str, offered: set[str]) -> None:
    rank = [*EFFORTS, DELEGATING_EFFORT].index
    assume(offered != {DELEGATING_EFFORT})
    choice = nearest_effort(asked, ModelEntry(slug="gpt-5.6-luna", efforts=tuple(sorted(offered, key=rank))))
    usable = offered - {DELEGATING_EFFORT}
    if not usable:
        assert choice.effort is None
        return
    assert choice.effort in usable
    lower = [effort for effort in usable if rank(effort) <= rank(asked)]
    assert choice.effort == (max(lower, key=rank) if lower else min(usable, key=rank))
    assert (choice.note is None) == (choice.effort == asked)
