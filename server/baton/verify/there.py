"""What is there, for whoever may not be allowed to look: pathlib's questions raise where nobody can tell."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def is_there(path: Path) -> bool:
    """Whether something is at a path, links followed; no where it cannot be looked at."""
    with suppress(OSError):
        return path.exists()
    return False


def is_folder(path: Path) -> bool:
    """Whether a folder is at a path, links followed; no where it cannot be looked at."""
    with suppress(OSError):
        return path.is_dir()
    return False


def is_file(path: Path) -> bool:
    """Whether a regular file is at a path, links followed; no where it cannot be looked at."""
    with suppress(OSError):
        return path.is_file()
    return False
