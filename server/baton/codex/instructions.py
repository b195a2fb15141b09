"""The instructions that a repository keeps for agents, collected as data for a worker's brief."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from baton.contract.tree import show_path

NAMES = ("AGENTS.override.md", "AGENTS.md")
"""In each folder the first that exists counts, as Codex itself reads them."""

MAX_BYTES = 32 * 1024
"""Of all files together, as in Codex."""


def collect_instructions(
    root: Path, cwd: Path, *, limit: int = MAX_BYTES, hidden: Callable[[Path], bool] = lambda path: False
) -> tuple[tuple[str, str], ...]:
    """Pairs of path and text, from `root` (the top of the worktree) down to `cwd`, outermost first.

    Paths are relative to `cwd`, as the worker sees them. Passed over are a link that leads out of `root`,
    what is no regular file, an unreadable file, and one whose real path is `hidden`. Text beyond `limit`
    bytes in all is cut off, and that is said. What cannot be decoded is shown as a replacement character.
    """
    root = root.resolve()
    found: list[tuple[str, str]] = []
    left = limit
    for folder in _folders(root, cwd.resolve()):
        path = _first(folder, root, hidden)
        if path is None or left <= 0:
            continue
        data = _read(path, left + 1)
        if data is None or not data.strip():
            continue
        text = data[:left].decode("utf-8", "replace")
        if len(data) > left:
            text += "\n[cut off here: the instructions are too long]"
        left -= len(data)
        found.append((show_path(os.fsencode(os.path.relpath(path, cwd.resolve()))), text))
    return tuple(found)


def _folders(root: Path, cwd: Path) -> list[Path]:
    if not cwd.is_relative_to(root):
        return [cwd]
    return [folder for folder in (cwd, *cwd.parents) if folder.is_relative_to(root)][::-1]


def _first(folder: Path, root: Path, hidden: Callable[[Path], bool]) -> Path | None:
    for name in NAMES:
        path = folder / name
        try:
            real = path.resolve()
            fits = path.is_file() and real.is_relative_to(root) and not hidden(real)
        except OSError:
            continue
        if fits:
            return path
    return None


def _read(path: Path, size: int) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return None
