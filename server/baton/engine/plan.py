"""What admission decided about a run, kept with it so that any later process goes on under the same terms."""

from __future__ import annotations

from typing import Literal

from baton.contract.advice import Advice, Facts
from baton.contract.base import Wire
from baton.contract.task import ResultDetail


class PlannedRoute(Wire):
    """The route of one task, resolved against the catalogue before anything was created."""

    role: str | None = None
    tier: str
    model: str
    effort: str | None = None
    note: str | None = None


class Exploring(Wire):
    """A run that explores: its task reads, and answers with findings that cite what it read."""

    files: list[str] = []
    """Patterns of what may be read; empty: everything."""


class RunPlan(Wire):
    """The part of an admitted run that is neither its tasks nor its policy."""

    routes: dict[str, PlannedRoute]
    """By task id."""
    result_detail: ResultDetail = ResultDetail.COMPACT
    max_parallel: int = 1
    hold_reason: str | None = None
    """Why the result is held although the call did not ask for it."""
    root_mode: Literal["adaptive", "control-plane"] = "adaptive"
    """How the supervising session works in this workspace, as person and project want it."""
    notes: list[str] = []
    supervisors: list[str] = []
    """Threads of the sessions that started the run; others have an interest later."""
    exploring: Exploring | None = None
    advice: Advice | None = None
    """What the facts that the call declared speak for."""
    facts: Facts | None = None
