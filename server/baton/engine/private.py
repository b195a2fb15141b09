"""The private repository that a recorded run's results lie in."""

from __future__ import annotations

from pathlib import Path

from baton.engine.house import House
from baton.ledger.records import RunRecord
from baton.workspace.git import Git
from baton.workspace.locate import locate
from baton.workspace.repository import PrivateRepository


def open_repository(house: House, run: RunRecord) -> PrivateRepository:
    """The private repository of a run's workspace."""
    git = Git.find()
    return PrivateRepository.open(house.state, locate(Path(run.workspace), git), git=git)
