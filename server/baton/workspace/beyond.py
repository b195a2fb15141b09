"""Which objects a commit has beyond one that it is built on, so that they can be handed out by themselves."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from baton.workspace.store import PrivateGit

MOST_KNOWN = 1_000

_KNOWN: dict[tuple[Path, str], tuple[str, frozenset[str]]] = {}
"""By commit: one that it is built on, and the objects that it has beyond that one, itself included."""

_LOCK = threading.Lock()


def note_beyond(repo: PrivateGit, commit: str, parent: str, objects: Iterable[str]) -> None:
    """Remember what a commit that was just made has beyond its only parent, itself left out."""
    with _LOCK:
        _remember(repo, commit, parent, frozenset((*objects, commit)))


def objects_beyond(repo: PrivateGit, commit: str, head: str) -> frozenset[str]:
    """All objects that are needed for `commit` where `head` with its history is there; perhaps some more
    that are part of `commit`, never one that is not."""
    found: set[str] = set()
    with _LOCK:
        at = commit
        while at != head:
            if (repo.path, at) not in _KNOWN:
                listed = repo.run(["rev-list", "--objects", "--no-object-names", at, f"^{head}"]).stdout
                _remember(repo, at, head, frozenset(listed.decode().split()))
            at, objects = _KNOWN[repo.path, at]
            found |= objects
    return frozenset(found)


def _remember(repo: PrivateGit, commit: str, parent: str, objects: frozenset[str]) -> None:
    if len(_KNOWN) >= MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[repo.path, commit] = parent, objects
