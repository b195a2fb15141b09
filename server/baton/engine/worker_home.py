"""The Codex home of the workers in a house."""

from __future__ import annotations

from baton.codex.home import WorkerHome, prepare_worker_home
from baton.engine.house import House


def worker_home(house: House) -> WorkerHome:
    """Made, or refreshed from the person's own. Raises as `prepare_worker_home`."""
    temporary = house.state.scratch / "codex"
    return prepare_worker_home(house.state.codex_home, house.codex_home, house.env, temporary=temporary)
