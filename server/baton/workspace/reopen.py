"""Opens a private repository by its key, also when the person's repository is gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from baton.contract.errors import BatonError
from baton.ledger.state import StateFolder
from baton.workspace.git import Git
from baton.workspace.limits import Limits
from baton.workspace.locate import Site, locate
from baton.workspace.repository import PrivateRepository


def reopen(state: StateFolder, key: str, git: Git) -> PrivateRepository | None:
    """The private repository of that key, None when there is none.

    When the person's repository is gone its site is a mere name: results in the private one can still be
    listed and forgotten, what was borrowed is lost.
    """
    path = private_path(state, key)
    try:
        root = Path(os.fsdecode((path / "root").read_bytes().rstrip(b"\n")))
    except OSError:
        return None
    try:
        site = locate(root, git)
    except BatonError:
        site = None
    if site is not None and site.key == key:
        return PrivateRepository.open(state, site, git=git)
    gone = Site(workspace=root, root=root, prefix=b"", kind="plain")
    return PrivateRepository(git=git, site=gone, path=path, worktrees=state.worktrees, limits=Limits())


def private_path(state: StateFolder, key: str) -> Path:
    """Where the private repository of that key lies."""
    return state.repos / key / "git"


def keys(state: StateFolder) -> Iterator[str]:
    """Keys of all private repositories."""
    for entry in sorted(state.repos.iterdir()):
        if (entry / "git" / "HEAD").exists():
            yield entry.name
