"""A plan is read back as it was kept, also where it names no role or no effort."""

from __future__ import annotations

from baton.engine.plan import PlannedRoute, RunPlan


def test_a_route_by_tier_alone_survives_being_kept() -> None:
    plan = RunPlan(routes={"t1": PlannedRoute(role=None, tier="sol", model="m", effort=None)})
    assert RunPlan.model_validate(plan.wire()) == plan
