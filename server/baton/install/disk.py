"""What lies at a path, as far as an installation needs to know."""

from __future__ import annotations

import hashlib
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from baton.contract.errors import StateUnavailable


class There(StrEnum):
    """What lies at a path."""

    NOTHING = "nothing"
    FILE = "file"
    LINK = "link"
    OTHER = "other"
    """A folder, a device, or a path whose parent is no folder."""


@dataclass(frozen=True)
class Found:
    """What was found at a path."""

    there: There
    sha256: str | None = None
    """Of a file's content; of what a link leads to, where that is a file."""


def look(path: Path) -> Found:
    """What lies at `path`. Raises `StateUnavailable` when it may not be looked at."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return Found(There.NOTHING)
    except NotADirectoryError:
        return Found(There.OTHER)
    except OSError as error:
        raise _unreadable(path, error) from None
    if stat.S_ISLNK(status.st_mode):
        return Found(There.LINK, digest(content(path)) if path.is_file() else None)
    if not stat.S_ISREG(status.st_mode):
        return Found(There.OTHER)
    return Found(There.FILE, digest(content(path)))


def content(path: Path) -> bytes:
    """A file's bytes. Raises `StateUnavailable` when they cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _unreadable(path: Path, error: OSError) -> StateUnavailable:
    return StateUnavailable(f"{path}: cannot be read: {error.strerror}; nothing was changed")
