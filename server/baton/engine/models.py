"""The models of the installed Codex, and what each tier of the policy becomes with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from baton.codex.binary import CodexBinary, find_codex
from baton.codex.catalogue import catalogue
from baton.contract.catalogue import ModelEntry
from baton.contract.errors import InvalidInput
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.engine.worker_home import worker_home
from baton.policy.model import Policy
from baton.policy.tiers import DELEGATING_EFFORT, nearest_effort, resolve_tier
from baton.process.environment import tool_environment


@dataclass(frozen=True)
class ResolvedTier:
    """What a tier stands for on this machine: a model with an effort, or why there is none."""

    name: str
    model: str | None = None
    effort: str | None = None
    """The tier's default as the model has it; None for a model without efforts."""
    note: str | None = None
    """Why it has no model, or why the effort is not the one that the policy names."""


@dataclass(frozen=True)
class Models:
    """The catalogue of the installed Codex beside the tiers."""

    binary: CodexBinary
    entries: tuple[ModelEntry, ...]
    tiers: tuple[ResolvedTier, ...]


async def find_models(house: House) -> tuple[CodexBinary, tuple[ModelEntry, ...]]:
    """The newest usable Codex and its catalogue; no worker and no sandbox is started.

    Raises `Unsupported` without a usable Codex, `CodexFailure` when it does not list its models.
    """
    binary = await blocking(find_codex, house.env, cache=house.state.codex_versions)
    home = await blocking(worker_home, house)
    env = {**tool_environment(house.env, home.env_names), **home.environment}
    return binary, await catalogue(binary.path, home.path, env, house.state.root / "catalogue.json")


async def installed_models(house: House, project: Path) -> Models:
    """Ask the installed Codex for its models and resolve every tier of the policy in force for `project`.

    Raises `Unsupported` without a usable Codex, `CodexFailure` when it lists no models, `InvalidInput` for a
    policy or config.toml with faults. A tier without a model is no error: its note says why.
    """
    policy = house.policy(project)
    binary, entries = await find_models(house)
    return Models(binary, entries, resolved_tiers(policy, entries))


def resolved_tiers(policy: Policy, entries: Sequence[ModelEntry]) -> tuple[ResolvedTier, ...]:
    """Every tier with its model and effort. Pure."""
    found = []
    for name, tier in policy.tiers.items():
        try:
            model = resolve_tier(policy, name, entries)
            choice = nearest_effort(tier.default_effort, model)
        except InvalidInput as error:
            found.append(ResolvedTier(name, note=error.message))
            continue
        found.append(ResolvedTier(name, model.slug, choice.effort, choice.note))
    return tuple(found)


def worker_efforts(entry: ModelEntry) -> tuple[str, ...]:
    """The efforts that a worker may have on this model; none for one that knows only those that delegate."""
    return tuple(effort for effort in entry.efforts if effort != DELEGATING_EFFORT)


def usable(entry: ModelEntry) -> bool:
    """Whether a worker can run on the model without delegating by itself."""
    return not entry.efforts or bool(worker_efforts(entry))
