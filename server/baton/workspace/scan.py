"""Walks a worktree that a worker has left, for what git would overlook, follow or wait on."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Set
from dataclasses import dataclass, field
from pathlib import Path

from baton.workspace.tree_paths import TreePaths


@dataclass
class Scan:
    """What lies in a worktree besides files, folders and links. Paths are relative to its root."""

    special: list[bytes] = field(default_factory=list)
    """Pipes, sockets and devices; they have been removed."""
    unread: list[bytes] = field(default_factory=list)
    """Folders that cannot be listed: their path is too long, for one."""
    git_entries: list[bytes] = field(default_factory=list)
    """Everything named `.git` below the root, in any case: git passes over it in silence."""
    all_known: bool = True
    """Whether everything in the worktree is a path of the tree that was asked for, or left out as a link."""
    over_limit: str | None = None


def scan_worktree(root: Path, leave_out: Set[bytes], limit: int, known: TreePaths) -> Scan:
    """Walk without following links; folders the worker locked are opened, special files removed.

    More than `limit` entries: the walk ends and `over_limit` says so.
    """
    scan = Scan()
    top = os.fsencode(root) + b"/"
    pending = [b""]
    seen = 0
    while pending:
        folder = pending.pop()
        entries = _entries(top + folder)
        if entries is None:
            scan.unread.append(folder[:-1])
            scan.all_known = False
        for entry in entries or ():
            seen += 1
            path = folder + entry.name
            if path == b".git":
                continue
            if path in leave_out:
                scan.all_known &= entry.is_symlink()
                continue
            if entry.name.lower() == b".git":
                scan.git_entries.append(path)
                scan.all_known = False
                continue
            is_dir = entry.is_dir(follow_symlinks=False)
            scan.all_known &= path in (known.folders if is_dir else known.files)
            if is_dir:
                pending.append(path + b"/")
            elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                scan.special.append(path)
                with contextlib.suppress(OSError):
                    os.unlink(top + path)
        if seen > limit:
            scan.all_known = False
            scan.over_limit = f"the worktree holds more than {limit} entries: not all were looked at"
            break
    return scan


def scan_paths(root: Path, paths: Collection[bytes], leave_out: Set[bytes], known: TreePaths) -> Scan:
    """As `scan_worktree` where all but these paths is known to be as the tree has it."""
    scan = Scan()
    top = os.fsencode(root) + b"/"
    for path in sorted(paths):
        try:
            mode = os.lstat(top + path).st_mode
        except OSError:
            continue
        if path in leave_out:
            scan.all_known &= stat.S_ISLNK(mode)
            continue
        scan.all_known &= path in (known.folders if stat.S_ISDIR(mode) else known.files)
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            scan.special.append(path)
            with contextlib.suppress(OSError):
                os.unlink(top + path)
    return scan


def _entries(folder: bytes) -> list[os.DirEntry[bytes]] | None:
    """What is in a folder that the worker may have locked; None where nobody can tell."""
    for _ in range(2):
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except PermissionError:
            with contextlib.suppress(OSError):
                os.chmod(folder, stat.S_IRWXU)
        except FileNotFoundError:
            return []
        except OSError:
            break
    return None
