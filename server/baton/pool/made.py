"""The folders that a pool made in a person's project for its sandboxes: gone when nothing came of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

from baton.contract.scope import ScopePlan
from baton.workspace.scope_plan import make_dirs

_RECORD = "made-folders"
"""Below the pool's scratch: their paths, each ended by a NUL."""


class MadeFolders:
    """What one pool made and still answers for. For several threads.

    A folder is removed only when it is one of these, is empty, and no attempt at work needs it. They are
    written down, so that the next start can do the same for a process that died: `remove_left`.
    """

    def __init__(self, scratch: Path) -> None:
        self._record = scratch / _RECORD
        self._made: set[Path] = set()
        self._needed: dict[str, set[Path]] = {}
        self._lock = Lock()

    def make(self, job_id: str, plan: ScopePlan) -> None:
        """Make what the plan of a job needs, which keeps it until `give_back`. Raises `OSError`."""
        with self._lock:
            self._needed[job_id] = {*plan.write_dirs, *plan.pinned_dirs, *plan.readonly}
            before = set(self._made)
            try:
                make_dirs(plan, self._made.add)
            finally:
                if self._made != before:
                    self._write()

    def give_back(self, job_id: str) -> None:
        """The job's attempt has ended. What holds something by now stays, and is the person's."""
        with self._lock:
            if self._needed.pop(job_id, None) is None or not self._made:
                return
            needed = set().union(*self._needed.values())
            over = {path for path in self._made if not any(other.is_relative_to(path) for other in needed)}
            if over:
                _remove_empty(over)
                self._made -= over
                self._write()

    def _write(self) -> None:
        # Replaced as a whole: a path that was cut short would be another one.
        new = self._record.with_name(f"{_RECORD}.new")
        new.write_bytes(b"".join(os.fsencode(path) + b"\0" for path in sorted(self._made)))
        new.replace(self._record)


def remove_left(scratch: Path) -> None:
    """Remove what a process that died has made and left empty. Nothing of its pool may be at work."""
    try:
        paths = (scratch / _RECORD).read_bytes().split(b"\0")
    except OSError:
        return
    _remove_empty({Path(os.fsdecode(path)) for path in paths if path})


def _remove_empty(paths: Iterable[Path]) -> None:
    for path in sorted(paths, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):
            path.rmdir()
