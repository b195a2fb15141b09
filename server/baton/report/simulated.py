"""Whether a model's answers were scripted."""

from __future__ import annotations

from baton.contract.evidence import Route
from baton.simulate.home import PROVIDER


def is_simulated(route: Route | None) -> bool:
    """Whether the route leads to the scripted model of the demonstration and the tests."""
    return route is not None and route.provider == PROVIDER
