"""Where journals of a workspace lie: on its own file system, and not where a person's tools look."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from baton.contract.errors import StateUnavailable

INSIDE = ".baton-journal"
"""Only used where a plain folder is a file system of its own; snapshots leave it out."""


def new_journal(root: Path, common_dir: Path | None, run_id: str) -> Path:
    """A free journal folder for one apply of a run; nothing is made.

    It lies in the repository's common git directory, or, when there is none or it is on another file system,
    in a hidden folder beside `root`, or, where that is impossible too, inside. Raises `StateUnavailable` when
    none of these can be written.
    """
    device = root.stat().st_dev
    for place in _places(root, common_dir):
        nearest = next(above for above in (place, *place.parents) if above.is_dir())
        if nearest.stat().st_dev == device and os.access(nearest, os.W_OK | os.X_OK):
            free = (place / (run_id if number == 1 else f"{run_id}-{number}") for number in count(1))
            return next(path for path in free if not os.path.lexists(path))
    raise StateUnavailable(f"no folder on the file system of {root} can hold the journal; make it writable")


def journals(root: Path, common_dir: Path | None) -> Iterator[Path]:
    """Every journal folder of the workspace's repository, finished ones with their backups included."""
    for place in _places(root, common_dir):
        if place.is_dir() and not place.is_symlink():
            yield from sorted(path for path in place.iterdir() if path.is_dir() and not path.is_symlink())


def tidy(root: Path, common_dir: Path | None) -> None:
    """Remove the places of journals that hold none; what holds one stays."""
    for place in _places(root, common_dir):
        with contextlib.suppress(OSError):
            place.rmdir()


def _places(root: Path, common_dir: Path | None) -> list[Path]:
    own = [] if common_dir is None else [common_dir / "baton" / "apply"]
    return [*own, root.parent / f".{root.name}.baton-journal", root / INSIDE]
