"""Reads git's tree objects: the entries of one folder, by the folder's path in a tree."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from baton.contract.errors import StateUnavailable
from baton.workspace.store import PrivateGit

FOLDER = 0o040000

MOST_ENTRIES = 100_000
"""Entries that are remembered of all folders together; those used last."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """What one name in a folder stands for."""

    mode: int
    oid: str


Entries = Mapping[bytes, TreeEntry]
"""A folder's entries by name."""

_KNOWN: dict[tuple[Path, str, bytes], Entries] = {}
_LOCK = threading.Lock()


def read_folders(repo: PrivateGit, tree: str, folders: Collection[bytes]) -> dict[bytes, Entries]:
    """The entries of these folders of a tree, which is given by its id; the top is the empty path.

    One that is no folder there is left out, as is one that cannot be read. No path may hold a line break: git
    answers line by line.
    Raises `StateUnavailable` when the tree itself is not there.
    """
    found: dict[bytes, Entries] = {}
    with _LOCK:
        for folder in folders:
            known = _KNOWN.pop((repo.path, tree, folder), None)
            if known is not None:
                _KNOWN[repo.path, tree, folder] = found[folder] = known
    wanted = [folder for folder in folders if folder not in found]
    if wanted:
        asked = _asked(repo, tree, wanted)
        _remember(repo.path, tree, asked)
        found |= asked
    if b"" in folders and b"" not in found:
        raise StateUnavailable(f"{repo.path} has no tree {tree}")
    return found


def remember_folders(repo: PrivateGit, tree: str, folders: Mapping[bytes, Entries]) -> None:
    """Have folders of a tree known that was just made of them."""
    _remember(repo.path, tree, folders)


def parse_tree(content: bytes, id_bytes: int) -> dict[bytes, TreeEntry]:
    """The entries of a tree object. Source: git's own documentation of the format (`gitformat-pack`)."""
    entries = {}
    at = 0
    while at < len(content):
        space = content.index(b" ", at)
        end = content.index(b"\0", space)
        oid = content[end + 1 : end + 1 + id_bytes].hex()
        entries[content[space + 1 : end]] = TreeEntry(int(content[at:space], 8), oid)
        at = end + 1 + id_bytes
    return entries


def tree_content(entries: Entries) -> bytes:
    """The tree object with these entries: sorted by name, a folder's name as if it ended in a slash."""
    ordered = sorted(entries.items(), key=lambda pair: sort_key(*pair))
    return b"".join(b"%o %s\0%s" % (one.mode, name, bytes.fromhex(one.oid)) for name, one in ordered)


def sort_key(name: bytes, entry: TreeEntry) -> bytes:
    """Where an entry stands in its folder."""
    return name + b"/" if entry.mode == FOLDER else name


def _asked(repo: PrivateGit, tree: str, folders: Collection[bytes]) -> dict[bytes, Entries]:
    id_bytes = len(tree) // 2
    # Not line by line: of a line git takes a carriage return at its end for a part of the line break.
    names = b"".join(b"%s:%s\0" % (tree.encode(), folder) for folder in folders)
    raw = repo.run(["cat-file", "--batch", "-z"], input=names).stdout
    found: dict[bytes, Entries] = {}
    at = 0
    for folder in folders:
        end = raw.index(b"\n", at)
        facts = raw[at:end].rsplit(b" ", 2)
        at = end + 1
        if facts[-1] == b"missing":
            continue
        size = int(facts[-1])
        if facts[-2] == b"tree":
            found[folder] = parse_tree(raw[at : at + size], id_bytes)
        at += size + 1
    return found


def _remember(path: Path, tree: str, folders: Mapping[bytes, Entries]) -> None:
    with _LOCK:
        for folder, entries in folders.items():
            _KNOWN[path, tree, folder] = entries
        total = sum(len(entries) for entries in _KNOWN.values())
        while total > MOST_ENTRIES and len(_KNOWN) > len(folders):
            total -= len(_KNOWN.pop(next(iter(_KNOWN))))
