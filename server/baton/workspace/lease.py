"""Knowing that nobody has a file open while it changes its name.

A program that opened a file writes into it wherever it has been moved to. A write lease (Linux, fcntl(2)) is
granted only while nobody else has the file open, and tells when somebody tries to: they wait until it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
import time
from collections.abc import Iterator

from baton.workspace.pathwalk import Seen

PATIENCE_SECONDS = 0.05
"""Longer than a program takes that opens a file, writes it and closes it."""

LOOK_SECONDS = 0.005


class Lease:
    """A write lease on one regular file."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @property
    def unbroken(self) -> bool:
        """Whether nobody has asked for the file since."""
        return fcntl.fcntl(self._handle, fcntl.F_GETLEASE) == fcntl.F_WRLCK

    def covers(self, seen: Seen) -> bool:
        """Whether the file is the one seen, and was not written to since."""
        found = os.fstat(self._handle)
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) == (
            *seen.identity,
            seen.size,
            seen.written_ns,
        )

    def is_at(self, folder: int, name: bytes) -> bool:
        """Whether the file lies under that name now."""
        with contextlib.suppress(FileNotFoundError):
            there = os.stat(name, dir_fd=folder, follow_symlinks=False)
            return os.path.samestat(there, os.fstat(self._handle))
        return False


@contextlib.contextmanager
def leased(folder: int, name: bytes) -> Iterator[Lease | None]:
    """Hold a lease on the file at `name`; None when somebody has it open, or there are no leases here.

    Meant for moments: who opens the file meanwhile waits, and gets it at the latest after the system's
    lease-break-time. Who has it open is given `PATIENCE_SECONDS` to close it.
    """
    handle = _open(folder, name)
    try:
        yield Lease(handle) if handle is not None and _granted_in_time(handle) else None
    finally:
        if handle is not None:
            os.close(handle)  # which ends the lease


def _open(folder: int, name: bytes) -> int | None:
    try:
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return None
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None


def _granted_in_time(handle: int) -> bool:
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            # A broken lease is told by a signal; this one does nothing where nobody listens.
            fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(LOOK_SECONDS)
        except OSError:
            return False
