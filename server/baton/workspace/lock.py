"""The lock on a person's repository or folder that every session and every home of Baton shares."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from baton.contract.errors import Busy, StateUnavailable
from baton.workspace.locate import Site

POLL_SECONDS = 0.02


class RepositoryLock:
    """Held while a workspace is compared and changed. Ends with the process that holds it.

    In a repository it is the file `baton.lock` in the common git directory; of a plain folder it is the
    folder itself, so that nothing is written there. Not for use by several threads at once.
    """

    def __init__(self, site: Site, *, timeout: float | None = None) -> None:
        """`timeout` is what `with lock:` waits in seconds; None waits without end."""
        self.path: Path = site.root if site.common_dir is None else site.common_dir / "baton.lock"
        self._flags = os.O_RDONLY | os.O_DIRECTORY if site.common_dir is None else os.O_RDWR | os.O_CREAT
        self._timeout = timeout
        self._handle: int | None = None

    @property
    def held(self) -> bool:
        return self._handle is not None

    def acquire(self, timeout: float | None = None) -> None:
        """Take the lock; raises `Busy` after `timeout` seconds, `StateUnavailable` when it cannot be made."""
        if self._handle is not None:
            raise RuntimeError(f"{self.path} is already held by this object")
        until = None if timeout is None else time.monotonic() + timeout
        try:
            handle = os.open(self.path, self._flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise StateUnavailable(f"cannot open the lock {self.path} ({error.strerror})") from None
        try:
            while not _attempt(handle, self.path):
                if until is not None and time.monotonic() >= until:
                    raise Busy(
                        f"another session of Baton is changing {self.path}; waited {timeout:g} s, try again"
                    )
                time.sleep(POLL_SECONDS)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle

    def release(self) -> None:
        """Give the lock back; nothing when it is not held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        self.acquire(self._timeout)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _attempt(handle: int, path: Path) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StateUnavailable(f"cannot lock {path} ({error.strerror})") from None
    return True
