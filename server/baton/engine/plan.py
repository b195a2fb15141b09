"""What admission decided about a run, kept with it so that any later process goes on under the same terms."""

from __future__ import annotations

from baton.contract.base import Wire
from baton.contract.task import ResultDetail


class PlannedRoute(Wire):
    """The route of one task, resolved against the catalogue before anything was created."""

    role: str | None = None
    tier: str
    model: str
    effort: str | None = None
    note: str | None = None


class RunPlan(Wire):
    """The part of an admitted run that is neither its tasks nor its policy."""

    routes: dict[str, PlannedRoute]
    """By task id."""
    result_detail: ResultDetail = ResultDetail.COMPACT
    max_parallel: int = 1
    hold_reason: str | None = None
    """Why the result is held although the call did not ask for it."""
    notes: list[str] = []
