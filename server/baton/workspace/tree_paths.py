"""Which paths a commit holds: needed with every reset and capture, listed once for each tree."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from baton.contract.tree import TreeChange
from baton.workspace.listing import GITLINK
from baton.workspace.store import PrivateGit

MOST_PATHS = 200_000
"""Paths that are remembered of all trees together; the trees used last, and at least one."""


@dataclass(frozen=True)
class TreePaths:
    """The paths of one commit, relative to the repository's root."""

    files: frozenset[bytes]
    """Everything that is no folder: files, links and submodules."""
    folders: frozenset[bytes]
    """The folders on the way to them, without the root."""
    submodules: tuple[bytes, ...] = ()


_KNOWN: dict[tuple[Path, str], TreePaths] = {}
"""By repository and tree: a snapshot has the very tree of the result that was applied before it."""

_LOCK = threading.Lock()


def tree_paths(repo: PrivateGit, commit: str) -> TreePaths:
    """The paths of a commit, which is given by its whole id."""
    tree = repo.tree_of(commit)
    with _LOCK:
        found = _KNOWN.pop((repo.path, tree), None) or _listed(repo, tree)
        _remember(repo, tree, found)
    return found


def note_changed(repo: PrivateGit, old: str, new: str, changes: Sequence[TreeChange]) -> None:
    """Have the paths of commit `new` known without a listing, where those of `old` are.

    `changes` is everything that differs between the two, without renames.
    """
    old_tree, new_tree = repo.tree_of(old), repo.tree_of(new)
    with _LOCK:
        before = _KNOWN.get((repo.path, old_tree))
        if before is None or any(GITLINK in (one.old_mode, one.new_mode) for one in changes):
            return
        gone = {change.path for change in changes if not change.new_mode}
        come = {change.path for change in changes if not change.old_mode}
        files = (before.files - gone) | come if gone or come else before.files
        # A folder goes with its last file.
        folders = folders_of(files) if gone else before.folders | folders_of(come)
        _remember(repo, new_tree, TreePaths(files, folders, before.submodules))


def folders_of(paths: Iterable[bytes]) -> frozenset[bytes]:
    """Every folder above one of the paths, without the root."""
    found: set[bytes] = set()
    for path in paths:
        folder = path.rpartition(b"/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition(b"/")[0]
    return frozenset(found)


def _listed(repo: PrivateGit, tree: str) -> TreePaths:
    files, submodules = [], []
    for line in repo.run(["ls-tree", "-r", "-z", "--full-tree", tree]).stdout.split(b"\0")[:-1]:
        path = line.partition(b"\t")[2]
        files.append(path)
        if line.startswith(b"160000 "):
            submodules.append(path)
    return TreePaths(frozenset(files), folders_of(files), tuple(submodules))


def _remember(repo: PrivateGit, tree: str, paths: TreePaths) -> None:
    _KNOWN[repo.path, tree] = paths
    total = sum(len(known.files) for known in _KNOWN.values())
    while total > MOST_PATHS and len(_KNOWN) > 1:
        oldest = next(iter(_KNOWN))
        total -= len(_KNOWN.pop(oldest).files)
