"""What the records say of who is good at what, and what may be worth a look. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from baton.consult.present import dollars
from baton.ledger.consultations import Strength

FEWEST = 5
"""With fewer questions or answers than these nothing is concluded."""

FAILING = 0.3
SLOW = 2.0


def failure_rate(row: Strength) -> float | None:
    """The share of questions that failed; None with too few to say."""
    return row.failed / row.asked if row.asked >= FEWEST else None


def shown(row: Strength) -> dict[str, Any]:
    """A row as JSON: a cost is known only when every turn told one."""
    told = asdict(row)
    known = dollars(told.pop("cost"))
    del told["commonest_failure"]
    rate = failure_rate(row)
    return told | {
        "commonestFailure": row.commonest_failure,
        "costUsd": known if not row.unpriced else None,
        "knownCostUsd": known if row.unpriced < row.asked else None,
        "failureRate": None if rate is None else round(rate, 2),
        "seconds": None if row.seconds is None else round(row.seconds, 1),
    }


def worth_a_look(rows: Sequence[Strength]) -> list[str]:
    """Agents that fail often, and ones that take much longer than another that fails no more often."""
    lines = []
    for row in rows:
        rate = failure_rate(row)
        if rate is not None and rate >= FAILING:
            commonest = f", most often {row.commonest_failure}" if row.commonest_failure else ""
            lines.append(
                f"{_name(row)} failed {row.failed} of {row.asked} {row.capability} questions{commonest}"
            )
    by_capability: dict[str, list[Strength]] = defaultdict(list)
    for row in rows:
        if row.answered >= FEWEST and row.seconds is not None:
            by_capability[row.capability].append(row)
    for capability, group in by_capability.items():
        fastest = min(group, key=lambda row: row.seconds or 0.0)
        for row in group:
            much = (row.seconds or 0.0) >= SLOW * max(fastest.seconds or 0.0, 0.1)
            if row is not fastest and much and (failure_rate(fastest) or 0) <= (failure_rate(row) or 0):
                lines.append(
                    f"{_name(row)} takes {row.seconds:.0f} s for a {capability} answer,"
                    f" {_name(fastest)} {fastest.seconds:.0f} s, and fails no more often"
                )
    return lines


def _name(row: Strength) -> str:
    return f"{row.agent} ({row.model})" if row.model else row.agent
