"""Which submodules a commit has: asked for with every capture, answered once for each commit."""

from __future__ import annotations

from baton.workspace.store import PrivateGit
from baton.workspace.tree_paths import tree_paths


def submodule_paths(repo: PrivateGit, commit: str) -> tuple[bytes, ...]:
    """Submodules of a commit, relative to the repository's root; `commit` is a whole id."""
    return tree_paths(repo, commit).submodules
