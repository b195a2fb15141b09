"""What a plan shows before anything is sent: material, reviewers, estimates, and what speaks against it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pathspec

from baton.consult import spend
from baton.consult.outgoing import Sighting, Sightings, prose
from baton.contract.errors import SpendLimit
from baton.contract.review import ReviewMode
from baton.ledger.consultations import DAY
from baton.policy.review_rules import ReviewRules
from baton.review.asking import Ask, Reviewer
from baton.review.material import Gathered
from baton.review.setting import Setting


def plan_shown(
    setting: Setting,
    mode: ReviewMode,
    goal: str,
    gathered: Gathered,
    reviewers: Sequence[Reviewer],
    ask: Ask,
    seen: Sightings,
    masked: Sequence[str],
) -> dict[str, Any]:
    """The plan as a caller sees it; names of files without the credentials in them."""
    asked, costs = [], list[float | None]()
    for reviewer in reviewers:
        turn = ask.first(reviewer, setting.consult, None).record
        earlier = setting.house.ledger.answered_consult_turns(turn.agent, turn.asked_model, spend.BASIS_TURNS)
        guess = spend.estimate(earlier, turn.prompt_bytes)
        costs.append(guess.cost)
        asked.append(
            {
                "reviewer": reviewer.seat,
                "model": turn.asked_model,
                "why": reviewer.why,
                "promptBytes": turn.prompt_bytes,
                "seconds": guess.seconds,
                "costUsd": guess.cost,
            }
        )
    known = [cost for cost in costs if cost is not None]
    shown: dict[str, Any] = {
        "goal": goal if len(goal) <= 200 else goal[:199] + "…",
        "material": [{"label": prose(piece.label)[0], "bytes": piece.bytes} for piece in gathered.manifest],
        "reviewers": asked,
        "requests": len(reviewers),
        "web": False,
        "estimatedCostUsd": sum(known) if len(known) == len(costs) else None,
        "secrets": _places(seen.secrets),
        "suspects": _places(seen.suspects),
    }
    more: dict[str, Any] = {
        "scope": gathered.source.pinned.shown() if gathered.source.pinned else None,
        "files": [prose(path)[0] for path in sorted(gathered.places)[:20]],
        "masked": list(masked),
        "notes": [*gathered.notes, *_over_ceiling(setting, len(reviewers))],
        "escalate": _escalation(setting.rules, mode, gathered),
    }
    return shown | {name: value for name, value in more.items() if value}


def _over_ceiling(setting: Setting, requests: int) -> list[str]:
    """What would keep a run from being sent now, in a line."""
    day = setting.house.ledger.consult_spent(since=time.time() - DAY)
    try:
        spend.check(setting.consult.spend, requests, day, None)
    except SpendLimit as error:
        return [f"as things are, a run is refused: {error.message}"]
    return []


def _places(sightings: Sequence[Sighting]) -> list[str]:
    shown = [sighting.place for sighting in sightings[:10]]
    return shown + ([f"and {len(sightings) - 10} more"] if len(sightings) > 10 else [])


def _escalation(rules: ReviewRules, mode: ReviewMode, gathered: Gathered) -> dict[str, Any] | None:
    if mode is ReviewMode.DEEP or not rules.escalate:
        return None
    spec = pathspec.GitIgnoreSpec.from_lines(rules.escalate)
    touched = sorted(path for path in gathered.places if spec.match_file(path))
    return (
        {"paths": [prose(path)[0] for path in touched[:20]], "suggestion": "mode deep"} if touched else None
    )
