"""Hidden files at every path where they can be read: in the worktree and in the person's own workspace."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from baton.workspace.glob import ANY_NAME, denial_glob
from baton.workspace.pattern import Pattern
from baton.workspace.scope import Scope


def hidden_paths(scope: Scope, folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """Hidden files and directories that a pattern names outright and that exist below one of `folders`."""
    found = {path for pattern in scope.hidden for folder in folders if (path := _existing(pattern, folder))}
    return tuple(sorted(found))


def hidden_globs(scope: Scope, folders: tuple[Path, ...]) -> tuple[str, ...]:
    """Absolute globs for every other hidden pattern, at least as wide as it, below each of `folders`."""
    found = {
        glob
        for pattern in scope.hidden
        for folder in folders
        if _existing(pattern, folder) is None
        for glob in _globs(pattern, folder)
    }
    return tuple(sorted(found))


def _existing(pattern: Pattern, folder: Path) -> Path | None:
    if pattern.exact is None:
        return None
    path = folder / os.fsdecode(pattern.exact)
    return path if path.exists() and not path.is_symlink() else None


def _globs(pattern: Pattern, folder: Path) -> Iterator[str]:
    top = re.sub(r"([*?\[\]{}\\])", lambda found: _literal(found[1]), str(folder)).rstrip("/")
    *names, _ = pattern.elements
    inside = bool(names) and names[-1] == ANY_NAME
    if inside:
        names = names[:-1]
    spelled = "/".join([top, *("**" if name is None else denial_glob(name) for name in names)])
    if not inside:
        yield spelled
    yield spelled if spelled.endswith("/**") else f"{spelled}/**"


def _literal(char: str) -> str:
    # A backslash in a bracket is an escape to some readers; one unknown character is near enough.
    return "?" if char == "\\" else f"[{char}]"
