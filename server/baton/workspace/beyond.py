"""What a commit that was just made has beyond its parent, so that it can be handed out by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from baton.workspace.store import PrivateGit

MOST_KNOWN = 1_000


@dataclass(frozen=True)
class Beyond:
    """The objects that a commit has and its parent has not, the commit itself included."""

    parent: str
    objects: frozenset[str]


_KNOWN: dict[tuple[Path, str], Beyond] = {}
_LOCK = threading.Lock()


def note_beyond(repo: PrivateGit, commit: str, parent: str, objects: Iterable[str]) -> None:
    """Remember what a commit has beyond its only parent; `objects` without the commit itself."""
    with _LOCK:
        if len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[repo.path, commit] = Beyond(parent, frozenset((*objects, commit)))


def beyond_parent(repo: PrivateGit, commit: str) -> Beyond | None:
    """What was remembered of a commit, None when nothing was."""
    return _KNOWN.get((repo.path, commit))
