"""From a role, tier and effort to a model and an effort that the installed Codex has: pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from baton.contract.catalogue import ModelEntry
from baton.contract.errors import InvalidInput
from baton.contract.nearest import did_you_mean
from baton.policy.model import Policy
from baton.policy.section import EFFORTS

_MEMBER = re.compile(r"gpt-(\d+(?:\.\d+)*)-([a-z0-9-]+)")

DELEGATING_EFFORT = "ultra"
"""With it Codex delegates by itself, so no worker ever runs with it."""


@dataclass(frozen=True)
class EffortChoice:
    """The effort that a worker gets."""

    effort: str | None
    """None for a model that has no efforts."""
    asked: str
    note: str | None = None
    """One line when it is not what was asked."""


@dataclass(frozen=True)
class RoutePlan:
    """The route of one task, decided before anything is created."""

    role: str | None
    """None when the task names a tier instead."""
    tier: str
    model: ModelEntry
    effort: EffortChoice


def plan_route(
    policy: Policy, catalogue: Sequence[ModelEntry], *, role: str | None, tier: str | None, effort: str | None
) -> RoutePlan:
    """The route for what a task names; with nothing named, that of the default role.

    Raises `InvalidInput` when both role and tier are named, and for an unknown name, model or effort.
    """
    if role is not None and tier is not None:
        raise InvalidInput("role, tier: name one of them, not both; a role has a tier")
    if tier is not None:
        wanted, role_name = policy.tier(tier).default_effort, None
        tier_name = tier
    else:
        role_name, chosen = policy.role(role)
        tier_name, wanted = chosen.tier, chosen.effort
    model = resolve_tier(policy, tier_name, catalogue)
    return RoutePlan(role_name, tier_name, model, nearest_effort(effort or wanted, model))


def resolve_tier(policy: Policy, tier: str, catalogue: Sequence[ModelEntry]) -> ModelEntry:
    """The model of a tier: the newest listed member of its family, or the pinned one.

    Raises `InvalidInput` with the candidates when the catalogue lacks it.
    """
    rule = policy.tier(tier)
    if not catalogue:
        raise InvalidInput(
            f"tiers.{tier}: the installed Codex lists no models; see what `codex debug models` says"
        )
    if rule.resolve == "pinned":
        found = [entry for entry in catalogue if entry.slug == rule.pinned]
        if found:
            return found[0]
        problem = f"tiers.{tier}.pinned: the installed Codex has no model {rule.pinned!r}"
    else:
        members = [entry for entry in catalogue if entry.listed and family_of(entry.slug) == rule.family]
        if members:
            return max(members, key=lambda entry: version_of(entry.slug))
        problem = f"tiers.{tier}.family: the installed Codex lists no model of the family {rule.family!r}"
    raise InvalidInput(
        f"{problem}; candidates: {', '.join(_candidates(rule.pinned, rule.family, catalogue))}"
    )


def nearest_effort(asked: str, model: ModelEntry) -> EffortChoice:
    """`asked`, or what is nearest to it below, or the lowest there is; never an effort that delegates.

    Raises `InvalidInput` for an effort that nobody knows, and for a model that can only delegate.
    """
    usable = [effort for effort in model.efforts if effort != DELEGATING_EFFORT]
    if asked in usable:
        return EffortChoice(asked, asked)
    if asked not in EFFORTS and asked != DELEGATING_EFFORT:
        advice = did_you_mean(asked, usable or EFFORTS)
        raise InvalidInput(f"effort: {model.slug} has no effort {asked!r}; {advice}")
    if model.efforts and not usable:
        raise InvalidInput(
            f"effort: {model.slug} only has {DELEGATING_EFFORT}, which would make the worker delegate"
        )
    if not usable:
        return EffortChoice(None, asked, f"{model.slug} has no reasoning efforts; {asked} was asked")
    ranked = sorted((effort for effort in usable if effort in EFFORTS), key=EFFORTS.index) or usable
    limit = len(EFFORTS) if asked == DELEGATING_EFFORT else EFFORTS.index(asked)
    lower = [effort for effort in ranked if effort in EFFORTS and EFFORTS.index(effort) < limit]
    effort = lower[-1] if lower else ranked[0]
    why = "would make the worker delegate" if asked == DELEGATING_EFFORT else f"is not one of {model.slug}'s"
    return EffortChoice(effort, asked, f"effort {asked} {why}; {effort} is used")


def family_of(slug: str) -> str | None:
    """`luna` for `gpt-5.6-luna`; None for a name of another form."""
    found = _MEMBER.fullmatch(slug)
    return found[2] if found else None


def version_of(slug: str) -> tuple[int, ...]:
    """`(5, 6)` for `gpt-5.6-luna`; empty, which is lowest, for a name of another form."""
    found = _MEMBER.fullmatch(slug)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def _candidates(slug: str, family: str, catalogue: Sequence[ModelEntry]) -> list[str]:
    """What a person may write instead: the family, newest first, else everything listed."""
    listed = [entry.slug for entry in catalogue if entry.listed] or [entry.slug for entry in catalogue]
    relatives = [
        name for name in listed if family in (family_of(name), name) or family_of(name) == family_of(slug)
    ]
    relatives = [name for name in relatives if family_of(name)]
    return sorted(relatives, key=version_of, reverse=True) or listed[:12]
