"""Writes single files and folders on the way to a change that holds as a whole."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path


def missing_folders(folders: Sequence[Path]) -> list[Path]:
    """The folders that have to be made for these to be there, outermost first."""
    missing: dict[Path, None] = {}
    for folder in folders:
        above = [parent for parent in (folder, *folder.parents) if not os.path.lexists(parent)]
        missing.update(dict.fromkeys(reversed(above)))
    return list(missing)


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove the folders that are empty, in the order given."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def mode_of(path: Path) -> int:
    """The permissions of what is there; 0600 where nothing is."""
    try:
        return path.stat().st_mode & 0o7777
    except OSError:
        return 0o600


def put(path: Path, content: bytes, mode: int) -> None:
    """Write a file that must not be there yet, readable by others only once it is whole."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(descriptor, mode)


def copy(source: Path, target: Path) -> None:
    """Copy a file with its times and permissions, a link as a link."""
    shutil.copy2(source, target, follow_symlinks=False)


def keep_owner(stage: Path, target: Path) -> None:
    """Give a staged file to whom the target belongs, as far as the system lets us."""
    with contextlib.suppress(OSError):
        there, staged = target.stat(), stage.lstat()
        if (there.st_uid, there.st_gid) != (staged.st_uid, staged.st_gid):
            os.chown(stage, there.st_uid, there.st_gid, follow_symlinks=False)


def sync(path: Path) -> None:
    """Have a file or folder on the disk, where its file system can say so."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
