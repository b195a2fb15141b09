"""The private repository that a recorded run's results lie in."""

from __future__ import annotations

import shlex
from pathlib import Path

from baton.contract.errors import BatonError
from baton.engine.house import House
from baton.ledger.records import RunRecord
from baton.workspace.git import Git
from baton.workspace.locate import locate
from baton.workspace.reopen import private_path, reopen
from baton.workspace.repository import PrivateRepository


def open_repository(house: House, run: RunRecord) -> PrivateRepository:
    """The private repository of a run's workspace."""
    git = Git.find()
    return PrivateRepository.open(house.state, locate(Path(run.workspace), git), git=git)


def open_for_reading(house: House, run: RunRecord) -> PrivateRepository:
    """The same, only to be read from: also when the workspace is not there any more.

    Paths are then those of the repository. Raises the `BatonError` of the workspace when there is no private
    repository either.
    """
    try:
        return open_repository(house, run)
    except BatonError:
        left = reopen(house.state, run.repo_key, Git.find())
        if left is None:
            raise
        return left


def fetch_command(house: House, run: RunRecord, ref: str) -> str:
    """The git command that gets a kept result, whether or not the workspace is there."""
    try:
        return open_repository(house, run).fetch_command(ref)
    except BatonError:
        place = private_path(house.state, run.repo_key)
        return f"git --git-dir={shlex.quote(str(place))} show {shlex.quote(ref)}"
