"""Tokens and their price: of attempts, workers and supervisors. Unknown is null, never zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from baton.contract.errors import InvalidInput
from baton.contract.evidence import Usage
from baton.engine.house import House
from baton.engine.supervisor_usage import supervisors
from baton.engine.usage import total_usage
from baton.ledger.records import AttemptRecord, RunRecord, TaskRecord
from baton.policy.load import load_policy
from baton.policy.routing_rules import Price

MILLION = 1_000_000

_BEFORE_THE_TURN = ("planned", "isolated")

Prices = Mapping[str, Price]


def attempts_spent(house: House, run: RunRecord, tasks: Sequence[TaskRecord]) -> list[dict[str, Any]]:
    """An entry for each attempt: its model, its tokens, and what they cost."""
    prices, _ = prices_or_fault(house)
    return [
        {
            "taskId": record.task_id,
            "attempt": record.attempt,
            "model": _model(record),
            "usage": None if record.result is None else record.result.usage.wire(compact=False),
            "cost": _cost_of(record, prices),
        }
        for record in _attempts(house, run, tasks)
    ]


def usage_totals(house: House, run: RunRecord, tasks: Sequence[TaskRecord]) -> dict[str, Any]:
    """The workers' sum beside the supervisors' own usage during the run.

    `unknownAttempts` are missing from the sum: they began, and nobody reported what they used. `pricesFault`
    is there when the policy cannot be read, and says why: no cost is known then.
    """
    prices, fault = prices_or_fault(house)
    records = _attempts(house, run, tasks)
    spent = total_usage(record.result.usage for record in records if record.result is not None)
    own = supervisors(house, run)
    return {
        **({} if fault is None else {"pricesFault": fault}),
        "workers": {
            "usage": spent.wire(compact=False),
            "cost": _sum(_cost_of(record, prices) for record in records),
            "unknownAttempts": sum(map(_is_unknown, records)),
        },
        "supervisors": [
            {
                "threadId": one.thread_id,
                "model": one.model,
                "usage": one.during.wire(compact=False),
                "cost": cost(one.during, prices.get(one.model or "")),
                "session": one.session.wire(compact=False),
            }
            for one in own
        ],
    }


def prices_or_fault(house: House) -> tuple[Prices, str | None]:
    """The person's prices as they are today, or why they cannot be read."""
    try:
        return load_policy(house.codex_home, None).prices, None
    except InvalidInput as error:
        return {}, error.message


def cost(usage: Usage, price: Price | None) -> float | None:
    """What the tokens cost at a price; None when either is not known in full. Pure."""
    given, cached, written = usage.input_tokens, usage.cached_input_tokens, usage.output_tokens
    if given == 0 and written == 0:
        return 0.0
    if price is None or given is None or cached is None or written is None:
        return None
    spent = (given - cached) * price.input + cached * price.cached_input + written * price.output
    return round(spent / MILLION, 6)


def _attempts(house: House, run: RunRecord, tasks: Sequence[TaskRecord]) -> list[AttemptRecord]:
    return [record for task in tasks for record in house.ledger.attempts(run.run_id, task.task_id)]


def _is_unknown(record: AttemptRecord) -> bool:
    if record.result is None:
        return record.step not in _BEFORE_THE_TURN
    return record.result.usage.total_tokens is None


def _model(record: AttemptRecord) -> str | None:
    return record.route.model if record.route is not None else None


def _cost_of(record: AttemptRecord, prices: Prices) -> float | None:
    if record.result is None:
        return None
    return cost(record.result.usage, prices.get(_model(record) or ""))


def _sum(costs: Iterable[float | None]) -> float | None:
    """The sum; None when a part is unknown, since the whole is then."""
    known = list(costs)
    if not known or any(one is None for one in known):
        return None
    return round(sum(one for one in known if one is not None), 6)
