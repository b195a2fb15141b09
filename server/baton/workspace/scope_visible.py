"""From patterns of what may be read to the existing paths that a sandbox shows, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from baton.contract.errors import InvalidInput
from baton.contract.evidence import PatternReading
from baton.contract.states import Enforcement
from baton.contract.tree import show_path
from baton.workspace.pattern import Pattern, read_pattern
from baton.workspace.scope import NEVER_WRITABLE

MAX_VISITED = 200_000
"""Entries looked at; a workspace with more is shown by directories."""

MAX_VISIBLE = 200
"""Paths shown one by one; each is a mount, and mounts make every command of the worker slower."""


@dataclass(frozen=True)
class Visible:
    """What may be read of a worktree."""

    paths: tuple[Path, ...]
    """Files, and directories as a whole, none below another."""
    readings: tuple[PatternReading, ...]
    wider: str | None = None
    """One line when more is shown than the patterns cover."""


def read_patterns(texts: Sequence[str]) -> tuple[Pattern, ...]:
    """Patterns of what may be read. A plain name means the path at the top of the workspace.

    Raises `InvalidInput` as every scope does.
    """
    return tuple(read_pattern(text, "files", narrow=True) for text in dict.fromkeys(texts))


def covers(patterns: Sequence[Pattern], path: bytes) -> bool:
    """Whether the file at `path`, relative to the workspace, may be read."""
    return any(pattern.matches(path) for pattern in patterns)


def plan_visible(patterns: Sequence[Pattern], cwd: Path) -> Visible:
    """What of the worktree folder `cwd` the patterns show; reads directories, follows no link.

    Where that would be too many paths, the directories that hold them are shown instead, and `wider` says so.
    Raises `InvalidInput` when nothing is there to be read.
    """
    cwd = Path(os.path.realpath(cwd))
    exact = _walk(patterns, cwd)
    wider = None
    if exact is None:
        exact = _directories(patterns, cwd)
        shown = ", ".join(sorted(show_path(pattern.literal_prefix) or "." for pattern in patterns)[:5])
        wider = f"the files are too many to show one by one: everything below {shown} can be read"
    if not exact:
        raise InvalidInput(f"files: nothing in the workspace matches {', '.join(p.text for p in patterns)}")
    held = Enforcement.PREVENTED if wider is None else Enforcement.DETECTED
    readings = tuple(
        PatternReading(
            pattern=pattern.text,
            role="readable",
            reading="what matches can be read, and nothing else" if wider is None else wider,
            enforcement=held,
        )
        for pattern in patterns
    )
    return Visible(tuple(sorted(exact)), readings, wider)


def _walk(patterns: Sequence[Pattern], cwd: Path) -> set[Path] | None:
    """Every path to be shown; None when they, or the workspace, are too many."""
    found: set[Path] = set()
    pending = [(cwd, [(pattern, pattern.start()) for pattern in patterns])]
    left = MAX_VISITED
    while pending:
        at, states = pending.pop()
        if any(pattern.covers_directory(state) for pattern, state in states):
            found.add(at)
            continue
        for entry in sorted(os.scandir(at), key=lambda entry: entry.name):
            left -= 1
            name = os.fsencode(entry.name)
            inner = [(pattern, after) for pattern, state in states if (after := pattern.step(state, name))]
            if not inner or entry.is_symlink() or name.lower() == NEVER_WRITABLE:
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append((Path(entry.path), inner))
            elif any(pattern.covers_file(state) for pattern, state in inner):
                found.add(Path(entry.path))
        if len(found) > MAX_VISIBLE or left < 0:
            return None
    return found


def _directories(patterns: Sequence[Pattern], cwd: Path) -> set[Path]:
    """The narrowest literal directory of each pattern that exists; none below another."""
    found = set()
    for pattern in patterns:
        path = cwd / os.fsdecode(pattern.literal_prefix)
        if path.exists() and not path.is_symlink():
            found.add(path)
    return {
        path for path in found if not any(path != other and path.is_relative_to(other) for other in found)
    }
