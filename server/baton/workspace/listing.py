"""Reads what git lists: the person's tracked and untracked paths, and the entries of an index of ours."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

GITLINK = 0o160000
LINK = 0o120000
EXECUTABLE = 0o100755
PLAIN = 0o100644


@dataclass
class Listing:
    """The paths of a work tree, relative to its top."""

    disk: dict[bytes, int] = field(default_factory=dict)
    """Paths whose state on disk counts, with the mode in the person's index (0 when untracked)."""
    untracked: list[bytes] = field(default_factory=list)
    """Those of them that are not tracked."""
    absent: dict[bytes, tuple[int, str]] = field(default_factory=dict)
    """Paths a sparse checkout leaves out, with mode and object in the person's index."""
    submodules: dict[bytes, tuple[int, str]] = field(default_factory=dict)
    nested: list[bytes] = field(default_factory=list)
    """Untracked repositories inside: git would record only a pointer to them."""


def parse_listing(raw: bytes, root: Path) -> Listing:
    """Read `git ls-files -t -v -s -z -c -o`: one line per entry, `? path` for an untracked one."""
    listing = Listing()
    top = os.fsencode(root) + b"/"
    disk = listing.disk
    for line in raw.split(b"\0"):
        if not line:
            continue
        if line[:2] == b"? ":
            path = line[2:]
            if path.endswith(b"/"):
                listing.nested.append(path[:-1])
            else:
                disk[path] = 0
                listing.untracked.append(path)
            continue
        facts, path = line.split(b"\t", 1)
        if facts[:9] == b"H 100644 ":
            disk[path] = 0o100644
            continue
        flag, mode_text, oid, _stage = facts.split(b" ")
        mode = int(mode_text, 8)
        if mode == GITLINK and not _is_file(top + path):
            listing.submodules[path] = (mode, oid.decode())
        elif flag in (b"S", b"s") and not os.path.lexists(top + path):
            listing.absent[path] = (mode, oid.decode())
        else:
            disk[path] = mode
    return listing


def parse_entries(raw: bytes) -> dict[bytes, tuple[int, str]]:
    """Read `git ls-files -s -z`: path to mode and object."""
    entries = {}
    for line in raw.split(b"\0"):
        if line:
            facts, path = line.split(b"\t", 1)
            mode, oid, _stage = facts.split(b" ")
            entries[path] = (int(mode, 8), oid.decode())
    return entries


def parse_dirty(raw: bytes) -> dict[bytes, int]:
    """Read `git diff-files --raw -z`: path to its mode on disk, 0 when it is gone."""
    fields = raw.split(b"\0")
    dirty = {}
    for head, path in zip(fields[:-1:2], fields[1::2], strict=True):
        _old, new, _oid, _new_oid, _status = head.split(b" ")
        dirty[path] = int(new, 8)
    return dirty


def behind_links(root: Path, paths: Iterable[bytes]) -> set[bytes]:
    """Those paths that are reached through a symbolic link below the root: they are not in this tree."""
    top = os.fsencode(root) + b"/"
    known: dict[bytes, bool] = {b"": False}

    def linked(folder: bytes) -> bool:
        found = known.get(folder)
        if found is None:
            try:
                is_link = stat.S_ISLNK(os.lstat(top + folder).st_mode)
            except OSError:
                is_link = False
            found = linked(folder.rpartition(b"/")[0]) or is_link
            known[folder] = found
        return found

    return {path for path in paths if linked(path.rpartition(b"/")[0])}


def _is_file(path: bytes) -> bool:
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
