"""Keeps a copy of what a worker made but a tree cannot or must not hold: ignored and nested content."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from baton.workspace.limits import Limits
from baton.workspace.worktree import remove_tree


@dataclass
class Kept:
    """How much was kept; `cut` when the limit left some of it out."""

    files: int = 0
    bytes: int = 0
    cut: bool = False

    @property
    def anything(self) -> bool:
        return self.files > 0


def keep_aside(
    root: Path, paths: Sequence[bytes], aside: Path, limits: Limits, leave_out: Set[bytes] = frozenset()
) -> Kept:
    """Copy files and links below `paths` to the same places below `aside`, the first come first.

    What `aside` held before is deleted.
    Links are copied as links; special files and what cannot be read are passed over.
    """
    remove_tree(aside)
    kept = Kept()
    top, to = os.fsencode(root) + b"/", os.fsencode(aside) + b"/"
    for path in _files_below(top, paths, leave_out):
        size = os.lstat(top + path).st_size
        if kept.files + 1 > limits.kept_files:
            kept.cut = True
            break
        if kept.bytes + size > limits.kept_bytes:
            kept.cut = True
            continue
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(to + path), exist_ok=True, mode=0o700)
            shutil.copy2(top + path, to + path, follow_symlinks=False)
            kept.files, kept.bytes = kept.files + 1, kept.bytes + size
    return kept


def _files_below(top: bytes, paths: Sequence[bytes], leave_out: Set[bytes]) -> Iterator[bytes]:
    pending = [path.rstrip(b"/") for path in reversed(paths)]
    while pending:
        path = pending.pop()
        if path in leave_out:
            continue
        try:
            mode = os.lstat(top + path).st_mode
            if stat.S_ISDIR(mode):
                pending += sorted((path + b"/" + name for name in os.listdir(top + path)), reverse=True)
            elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
                yield path
        except OSError:
            continue
