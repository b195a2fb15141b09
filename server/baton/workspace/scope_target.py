"""Where one allowed pattern becomes write access: the narrowest directories that hold it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from baton.contract.errors import InvalidInput
from baton.contract.tree import show_path
from baton.workspace.names import join, parent
from baton.workspace.pattern import Pattern
from baton.workspace.scope import NEVER_WRITABLE

MAX_SHOWN = 3
"""Paths named in one line before "and n more"."""


@dataclass
class Target:
    """The write access that one pattern needs. Paths are relative to the worktree folder, b"" is itself."""

    pattern: Pattern
    roots: list[bytes] = field(default_factory=list)
    """Directories that must be writable."""
    missing: list[bytes] = field(default_factory=list)
    """Those of them, and their parents, that do not exist yet."""
    open: str | None = None
    """What remains writable beyond the pattern, None when nothing does."""
    reading: str = ""
    """How the pattern was read."""


def find_target(pattern: Pattern, cwd: Path, skip: Collection[Path] = ()) -> Target:
    """Where `pattern` becomes write access below `cwd`, a path without links; changes nothing.

    A name at any depth is not looked for in the folders `skip`.

    Raises `InvalidInput` when the pattern goes through a symbolic link, whose far side the scope does not
    name, or through something that is not a directory.
    """
    if pattern.exact is not None:
        return _named_target(pattern, cwd, [pattern.exact])
    if pattern.bare_name is not None:
        found = list(_named(cwd, pattern.bare_name, pattern.directory_only, skip))
        return _named_target(pattern, cwd, found or [pattern.bare_name])
    target = Target(pattern)
    root = pattern.literal_prefix
    _refuse_detours(cwd, root, pattern)
    _need(cwd, root, target)
    place = f"below {show_path(root)}" if root else "in the workspace"
    if pattern.covers_directory(pattern.state_at(root)):
        target.reading = f"everything {place}"
    else:
        target.open = f"other files {place} than {pattern.text}"
        target.reading = f"what matches {place}; {show_path(root) or 'the workspace'} is writable"
    return target


def show_some(paths: Sequence[bytes]) -> str:
    """At most three of the paths, and how many more there are."""
    shown = ", ".join(show_path(path) or "the workspace" for path in paths[:MAX_SHOWN])
    return shown if len(paths) <= MAX_SHOWN else f"{shown} and {len(paths) - MAX_SHOWN} more"


def _named_target(pattern: Pattern, cwd: Path, paths: Sequence[bytes]) -> Target:
    target = Target(pattern)
    directories: list[bytes] = []
    files: list[bytes] = []
    for path in paths:
        _refuse_detours(cwd, path if pattern.directory_only else parent(path), pattern)
        if pattern.directory_only or _is_directory(cwd / os.fsdecode(path)):
            directories.append(path)
            _need(cwd, path, target)
        else:
            files.append(path)
            _need(cwd, parent(path), target)
    parts = []
    if directories:
        noun = "directory" if len(directories) == 1 else "directories"
        parts.append(f"the {noun} {show_some(directories)} with everything below")
    if files:
        noun = "file" if len(files) == 1 else "files"
        parts.append(f"the {noun} {show_some(files)}; what else is beside stays read-only")
        target.open = f"new files beside {show_some(files)}"
    target.reading = "; ".join(parts)
    if pattern.bare_name is not None:
        target.reading = f"the name {show_path(pattern.bare_name)} at any depth, writable: {target.reading}"
    return target


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _refuse_detours(cwd: Path, path: bytes, pattern: Pattern) -> None:
    here = cwd
    for name in path.split(b"/") if path else ():
        here = here / os.fsdecode(name)
        shown = show_path(os.fsencode(here.relative_to(cwd)))
        if here.is_symlink():
            inside = Path(os.path.realpath(here)).is_relative_to(cwd)
            advice = "name the directory that it leads to" if inside else "it leaves the workspace"
            raise InvalidInput(
                f"allowedFiles: pattern '{pattern.text}' goes through the symbolic link {shown}; {advice}"
            )
        if here.exists() and not here.is_dir():
            raise InvalidInput(
                f"allowedFiles: pattern '{pattern.text}' needs a directory where {shown} is a file"
            )


def _need(cwd: Path, path: bytes, target: Target) -> None:
    target.roots.append(path)
    names = path.split(b"/") if path else []
    for count in range(1, len(names) + 1):
        above = b"/".join(names[:count])
        if not (cwd / os.fsdecode(above)).exists():
            target.missing.append(above)


def _named(cwd: Path, name: bytes, directory_only: bool, skip: Collection[Path]) -> Iterator[bytes]:
    """Existing entries of that name, none below another; links are not followed."""
    folders = [b""]
    while folders:
        folder = folders.pop()
        with os.scandir(os.fsencode(cwd) + b"/" + folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            path = join(folder, entry.name)
            directory = entry.is_dir(follow_symlinks=False)
            if entry.name == name and (directory or not directory_only):
                yield path
            elif directory and entry.name.lower() != NEVER_WRITABLE and cwd / os.fsdecode(path) not in skip:
                folders.append(path)
