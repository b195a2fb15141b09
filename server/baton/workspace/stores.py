"""Where the objects of a person's repository lie: what a worker with hidden files must not read."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from pathlib import Path

from baton.contract.errors import Unsupported
from baton.workspace.locate import Site

MAX_STORES = 50
"""Borrowed object folders that are followed; git itself stops at a depth of five."""

_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')


def git_stores(site: Site) -> tuple[Path, ...]:
    """Git directories of the workspace's repository, and every object folder that it borrows from.

    Real paths; empty for a plain folder. Other clones of the same history are not known here. Raises
    `Unsupported` when it borrows from more folders than are followed: some would go unseen.
    """
    if site.common_dir is None:
        return ()
    found = dict.fromkeys(Path(os.path.realpath(path)) for path in (site.git_dir, site.common_dir) if path)
    pending = [site.common_dir / "objects"]
    seen: set[Path] = set()
    while pending:
        store = Path(os.path.realpath(pending.pop()))
        if store in seen:
            continue
        if len(seen) == MAX_STORES:
            raise Unsupported(
                f"{site.root} borrows objects from more than {MAX_STORES} folders; repack it"
                " (git repack -a -d) and remove .git/objects/info/alternates"
            )
        seen.add(store)
        pending += _alternates(store)
        pending += _linked(store)
    found |= dict.fromkeys(sorted(seen))
    return tuple(
        path for path in found if not any(path != other and path.is_relative_to(other) for other in found)
    )


def _alternates(store: Path) -> list[Path]:
    try:
        lines = (store / "info" / "alternates").read_bytes().split(b"\n")
    except OSError:
        return []
    return [store / os.fsdecode(name) for line in lines if not line.startswith(b"#") for name in _names(line)]


def _names(line: bytes) -> Iterator[bytes]:
    """As git reads a line: a C string in double quotes is a name by itself, whatever follows is another."""
    quoted = _QUOTED.match(line)
    if quoted is None:
        yield from [line] if line else ()
        return
    try:
        yield codecs.escape_decode(quoted[1])[0]
    except ValueError:
        yield line
    yield from _names(line[quoted.end() + 1 :])


def _linked(store: Path) -> Iterator[Path]:
    """Folders elsewhere that links in an object folder lead to: git reads through them."""
    for folder in (store, *_folders(store)):
        for entry in _entries(folder):
            if entry.is_symlink():
                target = Path(os.path.realpath(entry.path))
                found = target if target.is_dir() else target.parent
                if not found.is_relative_to(store):
                    yield found


def _folders(store: Path) -> Iterator[Path]:
    yield from (Path(entry.path) for entry in _entries(store) if entry.is_dir(follow_symlinks=False))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
