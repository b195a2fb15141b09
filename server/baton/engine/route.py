"""Which route an attempt runs on: the task's own, or the one that the ladder gave it."""

from __future__ import annotations

from baton.engine.plan import PlannedRoute, RunPlan
from baton.ledger.records import AttemptRecord, JsonObject

_KEY = "route"


def route_of(plan: RunPlan, record: AttemptRecord) -> PlannedRoute:
    """The route of an attempt."""
    given = record.data.get(_KEY)
    return plan.routes[record.task_id] if given is None else PlannedRoute.model_validate(given)


def with_route(route: PlannedRoute) -> JsonObject:
    """What an attempt's record keeps of a route that is not the task's own."""
    return {_KEY: route.wire(compact=False)}


def inherited(record: AttemptRecord) -> JsonObject:
    """What the next attempt takes over, so that it stays on the route of this one."""
    return {_KEY: record.data[_KEY]} if _KEY in record.data else {}
