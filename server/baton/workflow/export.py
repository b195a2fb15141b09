"""A workflow with everything it owns, as plain data: for exports and resources."""

from __future__ import annotations

from typing import Any

from baton.engine.house import House
from baton.workflow.history import Job, used


def exported(house: House, workflow_id: str) -> dict[str, Any]:
    """The record with every step; consultations, runs and reviews are named by their ids.

    Without tokens. Raises `NotFound`.
    """
    job = Job.read(house, workflow_id)
    spent = used(house, job)
    workflow = job.workflow.model_dump(mode="json", exclude={"replan_token", "session"})
    steps = [one.model_dump(mode="json", exclude={"token", "approval"}) for one in job.steps]
    for step in steps:
        # The review's own token stands beside what is sent.
        step["request"].pop("token", None)
    return {
        **workflow,
        "turns": spent.turns,
        "knownCostUsd": spent.cost,
        "unpriced": list(spent.unpriced),
        "steps": steps,
    }
