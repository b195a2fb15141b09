"""Remembers, per commit, the paths that a sparse checkout leaves out: in the tree, but nowhere on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from baton.workspace.store import PrivateGit


def record_absent(repo: PrivateGit, commit: str, paths: Iterable[bytes]) -> None:
    """Note which paths of a commit are not checked out."""
    data = b"\0".join(sorted(paths))
    if not data:
        return
    handle, name = tempfile.mkstemp(dir=repo.path / "absent")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(name).replace(repo.path / "absent" / commit)


def absent_paths(repo: PrivateGit, commit: str) -> frozenset[bytes]:
    """The paths of a commit that are not checked out."""
    try:
        data = (repo.path / "absent" / commit).read_bytes()
    except FileNotFoundError:
        return frozenset()
    return frozenset(data.split(b"\0"))


def inherit_absent(repo: PrivateGit, commit: str, parent: str) -> None:
    """A commit made from `parent` leaves out the same paths, but for those that it changed."""
    paths = absent_paths(repo, parent)
    if not paths:
        return
    listed = repo.run(["diff-tree", "-r", "-z", "--name-only", "--no-renames", parent, commit]).stdout
    record_absent(repo, commit, paths.difference(listed.split(b"\0")))
