"""Ceilings and estimates. Pure. Costs are US dollars as the agents' programs report them; unknown is None.

A question cannot be priced before it is put: what is promised is that nothing more is asked once a ceiling of
money is reached, not that it is never passed. Turns are counted exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from baton.contract.errors import SpendLimit
from baton.ledger.consult_records import ConsultTurnRecord
from baton.ledger.consultations import Spent
from baton.policy.consult_rules import ConsultSpend

BASIS_TURNS = 50
"""So many of an agent's latest answers are looked at for an estimate."""

FEWEST_PRICED = 3
"""With fewer prices than these there is no estimate of a cost."""


def check(rules: ConsultSpend, asking: int, day: Spent, consultation: Spent | None) -> None:
    """Raises `SpendLimit` when `asking` more turns may not be put. `consultation` is the one followed up."""
    if consultation is not None:
        _check("consultation", asking, consultation, rules.max_cost_per_consultation, 0)
    before = consultation.turns if consultation is not None else 0
    _check("consultation", asking, Spent(before, 0.0, ()), 0, rules.max_turns_per_consultation)
    _check("day", asking, day, rules.max_cost_per_day, rules.max_turns_per_day)


def left(rules: ConsultSpend, asking: int, day: Spent, consultation: Spent | None) -> float | None:
    """US dollars that each of `asking` more turns may cost until a ceiling is reached; None without one.

    For the programs that hold such a limit themselves; for the others it is a wish.
    """
    spent = consultation.cost if consultation is not None else 0.0
    ceilings = ((rules.max_cost_per_consultation, spent), (rules.max_cost_per_day, day.cost))
    rest = [ceiling - used for ceiling, used in ceilings if ceiling]
    return max(min(rest), 0.0) / asking if rest else None


def _check(scope: str, asking: int, spent: Spent, cost: float, turns: int) -> None:
    if turns and spent.turns + asking > turns:
        raise SpendLimit(
            f"{spent.turns} of {turns} questions of this {scope} are used and {asking} more were asked for"
            f" (consult.spend.max_turns_per_{scope}); nothing was sent"
        )
    if cost and spent.cost >= cost:
        floor = f", without {', '.join(spent.unpriced)}, which report no cost" if spent.unpriced else ""
        raise SpendLimit(
            f"{spent.cost:.2f} of {cost:.2f} US dollars of this {scope} are spent{floor}"
            f" (consult.spend.max_cost_per_{scope}); nothing was sent"
        )


@dataclass(frozen=True)
class Estimate:
    """What one question may cost, and what that rests on."""

    basis_turns: int
    """Earlier answers of this agent with this model."""
    output_tokens: int | None
    seconds: float | None
    cost: float | None
    """US dollars; None with fewer than three priced answers."""


def estimate(earlier: Sequence[ConsultTurnRecord], prompt_bytes: int) -> Estimate:
    """From an agent's latest answers: the median, with the cost scaled by how much longer the prompt is.

    Only input grows with the prompt, so scaling the whole cost rather overstates it; it is never scaled down.
    """
    if not earlier:
        return Estimate(0, None, None, None)
    tokens = [
        turn.usage.output_tokens
        for turn in earlier
        if turn.usage is not None and turn.usage.output_tokens is not None
    ]
    times = [turn.ended_at - turn.started_at for turn in earlier if turn.ended_at and turn.started_at]
    costs = [
        turn.cost * max(1.0, prompt_bytes / max(turn.prompt_bytes, 1))
        for turn in earlier
        if turn.cost is not None
    ]
    return Estimate(
        basis_turns=len(earlier),
        output_tokens=int(median(tokens)) if tokens else None,
        seconds=round(median(times), 1) if times else None,
        cost=round(median(costs), 4) if len(costs) >= FEWEST_PRICED else None,
    )
