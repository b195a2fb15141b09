"""What was spent in a time, by model, tier, role and repository: workers beside supervisors.

What is unknown is None, never zero.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baton.codex.rollout import find_rollout, read_rollout
from baton.contract.evidence import Usage
from baton.engine.house import House
from baton.engine.spending import Prices, cost, prices_or_fault
from baton.engine.supervisor_usage import NOTHING
from baton.engine.usage import total_usage
from baton.ledger.lines import AttemptSpent
from baton.ledger.overview import Overview

MILLION = 1_000_000


@dataclass
class Group:
    """What goes under one name; a name of None is unknown."""

    name: str | None
    attempts: int = 0
    tasks: int = 0
    """Those whose last attempt is in the group."""
    verified: int = 0
    """Of these tasks."""
    unknown: int = 0
    """Attempts (or sessions) whose tokens are not known, or not yet."""
    usage: Usage = field(default_factory=Usage)
    """As far as known; see `unknown`."""
    costs: list[float | None] = field(default_factory=list)

    def add(self, parts: Sequence[tuple[Usage, float | None]]) -> None:
        """Tokens and their cost."""
        self.attempts += len(parts)
        self.unknown += sum(usage.total_tokens is None for usage, _ in parts)
        self.usage = total_usage([self.usage, *(usage for usage, _ in parts)])
        self.costs += [price for _, price in parts]

    @property
    def cost(self) -> float | None:
        """None as soon as a part is unknown."""
        known = [one for one in self.costs if one is not None]
        return round(sum(known), 6) if known and len(known) == len(self.costs) else None

    @property
    def verified_per_million(self) -> float | None:
        """Verified tasks for a million tokens; None when any tokens are unknown, or there were none."""
        spent = self.usage.total_tokens
        return None if self.unknown or not spent else round(self.verified * MILLION / spent, 3)


def spending(house: House, since: float, now: float) -> dict[str, Any]:
    """Everything spent by work begun at `since` or later, for programs; what is unknown is null."""
    overview = Overview(house.ledger.db)
    prices, fault = prices_or_fault(house)
    spent = priced(overview.attempts_since(since), prices)
    pools = [(model, Usage.model_validate(usage)) for model, usage in overview.pool_attempts_since(since)]
    sessions = _sessions(house, overview, since, now)
    names: dict[str, Callable[[AttemptSpent], str | None]] = {
        "byModel": lambda one: one.model,
        "byTier": lambda one: one.tier,
        "byRole": lambda one: one.role,
        "byRepository": lambda one: one.workspace,
    }
    total = workers(spent, lambda one: None)
    return {
        "since": since,
        "pricesFault": fault,
        "workers": {
            "total": _wire(total[0]) if total else None,
            **{key: [_wire(group) for group in workers(spent, name)] for key, name in names.items()},
        },
        "poolJobs": {"byModel": _grouped([(model, model, usage) for model, usage in pools], prices)},
        "supervisors": {
            "byModel": _grouped([(one.model, one.model, one.usage) for one in sessions], prices),
            "byRepository": _grouped([(one.workspace, one.model, one.usage) for one in sessions], prices),
        },
    }


Priced = tuple[AttemptSpent, Usage, float | None]


def priced(spent: Sequence[AttemptSpent], prices: Prices) -> list[Priced]:
    """Each attempt with its tokens and their cost. Pure."""
    found = []
    for one in spent:
        usage = Usage.model_construct(
            input_tokens=one.input_tokens,
            cached_input_tokens=one.cached_input_tokens,
            output_tokens=one.output_tokens,
            reasoning_output_tokens=one.reasoning_output_tokens,
            total_tokens=one.total_tokens,
        )
        found.append((one, usage, cost(usage, prices.get(one.model or ""))))
    return found


def workers(spent: Sequence[Priced], name: Callable[[AttemptSpent], str | None]) -> list[Group]:
    """The attempts in groups, what spent most first. Pure."""
    parts: dict[str | None, list[Priced]] = {}
    for part in spent:
        parts.setdefault(name(part[0]), []).append(part)
    groups = []
    for key, listed in parts.items():
        group = Group(key)
        group.add([(usage, price) for _, usage, price in listed])
        group.tasks = sum(one.counts for one, _, _ in listed)
        group.verified = sum(one.verdict == "verified" for one, _, _ in listed)
        groups.append(group)
    return _ordered(groups)


@dataclass(frozen=True)
class _Session:
    """What one supervising session spent on one workspace while runs of its own went on there."""

    workspace: str
    model: str | None
    usage: Usage


def _sessions(house: House, overview: Overview, since: float, now: float) -> list[_Session]:
    times: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for workspace, threads, began, ended in overview.supervised_since(since):
        for thread in json.loads(threads):
            times.setdefault((thread, workspace), []).append((began, ended or now))
    found = []
    for (thread, workspace), spans in times.items():
        path = find_rollout(house.codex_home, thread)
        parts = [_part(path, begin, end) for begin, end in merged(spans)]
        models = {model for model, _ in parts}
        # One part that is unknown makes the whole unknown: the rest would pass for all of it.
        known = all(usage.total_tokens is not None for _, usage in parts)
        usage = total_usage(usage for _, usage in parts) if known else Usage()
        found.append(_Session(workspace, models.pop() if len(models) == 1 else None, usage))
    return found


def _part(path: Path | None, begin: float, end: float) -> tuple[str | None, Usage]:
    if path is None:
        return None, Usage()
    try:
        part = read_rollout(path, since=begin, until=end)
    except OSError:
        return None, Usage()
    usage = NOTHING if part.usage.total_tokens is None and part.reached else part.usage
    return part.models[0] if len(part.models) == 1 else None, usage


def merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The spans without overlap: what runs at the same time is spent once. Pure."""
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined


def _grouped(parts: Iterable[tuple[str | None, str | None, Usage]], prices: Prices) -> list[dict[str, Any]]:
    """Parts, each a name, a model and tokens, under their names."""
    groups: dict[str | None, Group] = {}
    for name, model, usage in parts:
        groups.setdefault(name, Group(name)).add([(usage, cost(usage, prices.get(model or "")))])
    return [_plain(group) for group in _ordered(groups.values())]


def _ordered(groups: Iterable[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: (-(group.usage.total_tokens or 0), group.name or ""))


def _wire(group: Group) -> dict[str, Any]:
    return {
        **_plain(group),
        "tasks": group.tasks,
        "verifiedTasks": group.verified,
        "verifiedPerMillionTokens": group.verified_per_million,
    }


def _plain(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "count": group.attempts,
        "unknown": group.unknown,
        "usage": group.usage.wire(compact=False),
        "cost": group.cost,
    }
