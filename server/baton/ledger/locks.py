"""Locks between processes: flock on a file, gone with the process that holds it, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Self

from baton.contract.errors import Busy, StateUnavailable

POLL_SECONDS = 0.02


class FileLock:
    """One hold on one lock file. Two objects exclude each other, also within one process.

    Not for use by several threads at once. The file stays when the lock is released; only `remove`, called
    while it is held alone, takes it away.
    """

    def __init__(self, path: Path, shared: bool = False, *, timeout: float | None = None) -> None:
        """`timeout` is what `with lock:` waits in seconds; None waits without end."""
        self.path = path
        self.shared = shared
        self.timeout = timeout
        self._handle: int | None = None

    @classmethod
    def adopt(cls, path: Path, handle: int) -> FileLock:
        """The hold of a parent process, handed over by inheriting its open file."""
        lock = cls(path)
        os.set_inheritable(handle, False)
        lock._handle = handle
        return lock

    def handle(self) -> int:
        """The open file that holds the lock, to be inherited by a child that takes over the hold."""
        if self._handle is None:
            raise RuntimeError(f"{self.path} is not held")
        return self._handle

    @property
    def held(self) -> bool:
        return self._handle is not None

    def try_acquire(self) -> bool:
        """Take the lock if it is free now."""
        # A second look, because `is_held` of another process takes the lock for an instant.
        for last in (False, True):
            if self._attempt():
                return True
            if not last:
                time.sleep(0.005)
        return False

    def acquire(self, timeout: float | None = None) -> None:
        """Take the lock; after `timeout` seconds raise `Busy`. None waits without end."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self._attempt():
            if until is not None and time.monotonic() >= until:
                raise Busy(f"another process holds {self.path}; waited {timeout:g} s, try again")
            time.sleep(POLL_SECONDS)

    def release(self) -> None:
        """Give the lock back; nothing when it is not held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def remove(self) -> None:
        """Delete the lock file while holding it alone, and release. Waiters notice and make a new one."""
        if self._handle is None or self.shared:
            raise RuntimeError("only who holds the lock alone may remove its file")
        self.path.unlink(missing_ok=True)
        self.release()

    def __enter__(self) -> Self:
        self.acquire(self.timeout)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _attempt(self) -> bool:
        if self._handle is not None:
            raise RuntimeError(f"{self.path} is already held by this object")
        handle = _open(self.path)
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if self.shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        except OSError as error:
            os.close(handle)
            raise StateUnavailable(f"cannot lock {self.path} ({error.strerror})") from None
        if not _is_file_at(handle, self.path):  # removed by its holder between our open and our lock
            os.close(handle)
            return False
        self._handle = handle
        return True


def is_held(path: Path) -> bool:
    """Whether any process holds the lock, alone or shared. A missing file is a free lock."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StateUnavailable(f"cannot look at the lock {path} ({error.strerror})") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateUnavailable(f"cannot open the lock {path} ({error.strerror})") from None


def _is_file_at(handle: int, path: Path) -> bool:
    try:
        there = path.stat()
    except OSError:
        return False
    mine = os.fstat(handle)
    return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)
