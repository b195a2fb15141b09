"""Hidden files at every path where they can be read: in the worktree and in the person's own workspace."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from baton.workspace.glob import ANY_NAME, denial_glob
from baton.workspace.pattern import Pattern
from baton.workspace.scope import NEVER_WRITABLE, Scope

MAX_VISITED = 50_000
"""Entries looked at in one folder; what lies beyond is hidden by the globs alone."""


def hidden_paths(scope: Scope, folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """Every hidden file that exists below one of `folders`, and the hidden directory that stands alone."""
    found = _find(scope, folders)
    if _one_mount_each(scope, folders):
        return tuple(sorted({*found.files, *found.directories}))
    return tuple(sorted(found.files))


def hidden_globs(scope: Scope, folders: tuple[Path, ...]) -> tuple[str, ...]:
    """Absolute globs for every other hidden pattern, at least as wide as it, below each of `folders`.

    What exists is listed besides what a glob would find: in a command that starts inside a matching directory
    not every Codex understands a glob that names this directory by a wildcard.
    """
    if _one_mount_each(scope, folders):
        return ()
    globs = {
        glob
        for pattern in scope.hidden
        for folder in folders
        if pattern.exact is None or not (folder / os.fsdecode(pattern.exact)).exists()
        for glob in _globs(pattern, folder)
    }
    return tuple(sorted(globs | {f"{_escaped(path)}/**" for path in _find(scope, folders).directories}))


@dataclass
class _Found:
    """What exists of the hidden, outermost first: nothing below a hidden directory is listed."""

    files: set[Path] = field(default_factory=set)
    directories: set[Path] = field(default_factory=set)


def _one_mount_each(scope: Scope, folders: tuple[Path, ...]) -> bool:
    """Whether every hidden path is named outright and there: a directory can then be denied as a whole.

    Beside globs it cannot: the sandbox could not be set up for a file that both deny.
    """
    return all(
        pattern.exact is not None and (folder / os.fsdecode(pattern.exact)).exists()
        for pattern in scope.hidden
        for folder in folders
    )


def _find(scope: Scope, folders: tuple[Path, ...]) -> _Found:
    found = _Found()
    for folder in folders if scope.hidden else ():
        _walk(scope, folder, found)
    return found


def _walk(scope: Scope, folder: Path, found: _Found) -> None:
    pending = [(folder, [(pattern, pattern.start()) for pattern in scope.hidden])]
    left = MAX_VISITED
    while pending and left > 0:
        at, states = pending.pop()
        for entry in _entries(at):
            left -= 1
            name = os.fsencode(entry.name)
            inner = [(pattern, after) for pattern, state in states if (after := pattern.step(state, name))]
            if not inner or entry.is_symlink() or name.lower() == NEVER_WRITABLE:
                continue
            directory = entry.is_dir(follow_symlinks=False)
            if directory and any(pattern.covers_directory(state) for pattern, state in inner):
                found.directories.add(Path(entry.path))
            elif directory:
                pending.append((Path(entry.path), inner))
            elif any(pattern.covers_file(state) for pattern, state in inner):
                found.files.add(Path(entry.path))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _globs(pattern: Pattern, folder: Path) -> Iterator[str]:
    top = _escaped(folder).rstrip("/")
    *names, _ = pattern.elements
    inside = bool(names) and names[-1] == ANY_NAME
    if inside:
        names = names[:-1]
    spelled = "/".join([top, *("**" if name is None else denial_glob(name) for name in names)])
    if not inside:
        yield spelled
    yield spelled if spelled.endswith("/**") else f"{spelled}/**"


def _escaped(path: Path) -> str:
    text = os.fsencode(path).decode("utf-8", "replace").replace("\ufffd", "?")
    return re.sub(r"([*\[\]{}\\])", lambda found: _literal(found[1]), text)


def _literal(char: str) -> str:
    # A backslash in a bracket is an escape to some readers; one unknown character is near enough.
    return "?" if char == "\\" else f"[{char}]"
