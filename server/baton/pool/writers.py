"""Who may write where: one pool of this machine at a time in a directory, in what is above or below it.

The directories themselves carry the locks, so every state folder and every user of the machine shares them
and nothing is written for it. A writer holds its directory alone and everything above it shared, so that one
in `/a/b` keeps out one in `/a` and one in `/a/b/c`, but not one in `/a/d`. A lock ends with its process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from baton.contract.errors import StateUnavailable


class WriterLocks:
    """The directories in which one pool writes. Not for several threads."""

    def __init__(self) -> None:
        self._held: dict[Path, list[int]] = {}
        self._writers: dict[Path, int] = {}

    def try_acquire(self, workdir: Path) -> bool:
        """Whether this pool may have one more writer in `workdir`, as far as others are concerned.

        Other writers of this same pool in the very same directory are its own business. Raises
        `StateUnavailable` when the directory cannot be opened.
        """
        if workdir not in self._held:
            handles = _lock(workdir)
            if handles is None:
                return False
            self._held[workdir] = handles
        self._writers[workdir] = self._writers.get(workdir, 0) + 1
        return True

    def writers(self, workdir: Path) -> int:
        """How many writers of this pool are at work there."""
        return self._writers.get(workdir, 0)

    def release(self, workdir: Path) -> None:
        """One writer fewer; the last one gives the directory back."""
        left = self._writers[workdir] - 1
        self._writers[workdir] = left
        if not left:
            del self._writers[workdir]
            for handle in self._held.pop(workdir):
                os.close(handle)

    def close(self) -> None:
        """Give everything back."""
        for workdir in list(self._held):
            self._writers[workdir] = 1
            self.release(workdir)


def _lock(workdir: Path) -> list[int] | None:
    handles: list[int] = []
    try:
        handles.append(_open(workdir))
        for folder in workdir.parents:
            # One that cannot be read cannot be locked either; a writer there could not be started.
            with contextlib.suppress(PermissionError):
                handles.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        fcntl.flock(handles[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        for handle in handles[1:]:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        _close(handles)
        return None
    except OSError as error:
        _close(handles)
        raise StateUnavailable(f"cannot lock the directory {workdir} ({error.strerror})") from None
    except BaseException:
        _close(handles)
        raise
    return handles


def _open(workdir: Path) -> int:
    return os.open(workdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)


def _close(handles: list[int]) -> None:
    for handle in handles:
        os.close(handle)
