"""Mount points of a worker's sandbox that are there before its first command: none makes or removes any.

Codex covers some names in every writable folder. Where one is missing, each command would make it and take it
away again: seen from outside, somebody makes folders in the worktree while the worker is at work.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection
from pathlib import Path

from baton.workspace.create import MOUNT_POINTS
from baton.workspace.names import base, join, parent
from baton.workspace.pathwalk import Tree

_RECORD = "baton-mount-points"

_NAMES = tuple(os.fsencode(name) for name in MOUNT_POINTS)


def make_mount_points(root: Path, admin: Path, folders: Collection[bytes]) -> frozenset[bytes]:
    """Make those that are missing in these folders of a worktree; returns their paths, relative to its root.

    They are empty folders. What has such a name already, whatever it is, stays as it is. A record in `admin`
    says what is to be taken away again, also after a crash. Links are not followed. Raises `OSError`.
    """
    top = os.fsencode(root) + b"/"
    paths = (join(folder, name) for folder in folders for name in _NAMES)
    missing = [path for path in paths if not os.path.lexists(top + path)]
    (admin / _RECORD).write_bytes(b"\0".join(missing))
    with Tree(root.parent) as slot:
        for path in missing:
            with slot.folder(_in_slot(root, parent(path))) as folder:
                os.mkdir(base(path), dir_fd=folder)
    return frozenset(missing)


def take_mount_points(root: Path, admin: Path) -> frozenset[bytes] | None:
    """Take away the mount points that were made, and return their paths.

    None when one of them was gone or held something: that stays, as does whatever came in the place of one.
    """
    try:
        recorded = (admin / _RECORD).read_bytes()
    except FileNotFoundError:
        return frozenset()
    paths = recorded.split(b"\0") if recorded else []
    taken = frozenset(path for path in paths if _take(root, path))
    (admin / _RECORD).unlink()
    return taken if len(taken) == len(paths) else None


def _take(root: Path, path: bytes) -> bool:
    for _ in range(2):
        try:
            with Tree(root.parent) as slot, slot.folder(_in_slot(root, parent(path))) as folder:
                os.rmdir(base(path), dir_fd=folder)
            return True
        except PermissionError:
            _unlock(root, parent(path))
        except OSError:  # it holds something, is gone, or is something else by now
            break
    return False


def _unlock(root: Path, folder: bytes) -> None:
    """Let the owner into a folder that its worker has locked, as a look at everything does."""
    at = os.fsencode(root)
    for name in (b"", *folder.split(b"/")):
        at = join(at, name) if name else at
        with contextlib.suppress(OSError):
            if not stat.S_ISDIR(os.lstat(at).st_mode):
                return
            os.chmod(at, stat.S_IRWXU)


def _in_slot(root: Path, folder: bytes) -> bytes:
    return join(os.fsencode(root.name), folder) if folder else os.fsencode(root.name)
