"""Which submodules a commit has: asked for with every capture, answered once for each commit."""

from __future__ import annotations

from pathlib import Path

from baton.workspace.store import PrivateGit

_KNOWN: dict[tuple[Path, str], tuple[bytes, ...]] = {}

_MOST_KNOWN = 10_000


def submodule_paths(repo: PrivateGit, commit: str) -> tuple[bytes, ...]:
    """Submodules of a commit, relative to the repository's root; `commit` is a whole id."""
    if (repo.path, commit) not in _KNOWN:
        listed = repo.run(["ls-tree", "-r", "-z", commit]).stdout.split(b"\0")
        found = tuple(line.split(b"\t", 1)[1] for line in listed if line.startswith(b"160000 "))
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[repo.path, commit] = found
        return found
    return _KNOWN[repo.path, commit]
