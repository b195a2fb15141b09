"""Makes the tree that differs from another in a few paths, without an index: as much work as there are paths.

Git writes a tree from an index, and reads and writes the whole of that first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from baton.workspace.listing import GITLINK
from baton.workspace.store import PrivateGit
from baton.workspace.tree_objects import (
    FOLDER,
    Entries,
    TreeEntry,
    read_folders,
    remember_folders,
    sort_key,
    tree_content,
)
from baton.workspace.tree_paths import folders_of


@dataclass(frozen=True)
class EditedTree:
    """A tree, and how it differs from the one that it was made from."""

    tree: str
    raw: bytes
    """As `PrivateGit.raw_changes` tells it."""


def edit_tree(repo: PrivateGit, tree: str, entries: Mapping[bytes, TreeEntry | None]) -> EditedTree | None:
    """Write the tree that `tree`, given by its id, becomes with these entries by path; None takes a path out.

    A folder comes with its first entry and goes with its last. None for what is left to git: an entry in the
    place of a folder or a submodule, a folder in the place of an entry, one that cannot be read, a path with
    a line break. What the entries name must be in the store already.
    """
    if any(b"\n" in path for path in entries):
        return None
    edit = _Edit(repo, read_folders(repo, tree, {b"", *folders_of(entries)}))
    try:
        made = edit.folder(b"", entries)
    except _InTheWay:
        return None
    oid = edit.write(b"", made.entries) if made.told else tree
    remember_folders(repo, oid, edit.written)
    return EditedTree(oid, b"".join(made.told))


class _InTheWay(Exception):
    """A path is of another kind than the entry that is to go there or below it, or nobody knows what is."""


@dataclass(frozen=True)
class _Folder:
    entries: Entries
    told: list[bytes]
    """How it differs from what was there, in git's order."""


@dataclass
class _Edit:
    repo: PrivateGit
    old: Mapping[bytes, Entries]
    written: dict[bytes, Entries] = field(default_factory=dict)

    def folder(self, above: bytes, entries: Mapping[bytes, TreeEntry | None]) -> _Folder:
        """One folder with these entries; `above` is its path with a slash at the end, paths are below it."""
        groups: dict[bytes, dict[bytes, TreeEntry | None]] = {}
        for path, entry in entries.items():
            name, _, rest = path.partition(b"/")
            groups.setdefault(name, {})[rest] = entry
        made = dict(self.old.get(above[:-1], {}))
        told: dict[bytes, list[bytes]] = {}
        for name, group in groups.items():
            before = made.pop(name, None)
            after, inner = self._entry(above + name, before, group)
            if after is not None:
                made[name] = after
            shown = after or before
            if shown is not None and after != before:
                line = self._line(above + name, before, after)
                told[sort_key(name, shown)] = [line, *inner]
        return _Folder(made, [line for key in sorted(told) for line in told[key]])

    def _entry(
        self, path: bytes, before: TreeEntry | None, group: Mapping[bytes, TreeEntry | None]
    ) -> tuple[TreeEntry | None, list[bytes]]:
        if b"" in group:
            if len(group) > 1 or (before is not None and before.mode in (FOLDER, GITLINK)):
                raise _InTheWay
            return group[b""], []
        if before is not None and (before.mode != FOLDER or path not in self.old):
            raise _InTheWay
        inner = self.folder(path + b"/", group)
        if not inner.told:
            return before, []
        after = TreeEntry(FOLDER, self.write(path, inner.entries)) if inner.entries else None
        return after, inner.told

    def write(self, path: bytes, entries: Entries) -> str:
        self.written[path] = entries
        return self.repo.write("tree", tree_content(entries))

    def _line(self, path: bytes, before: TreeEntry | None, after: TreeEntry | None) -> bytes:
        old, new = before or TreeEntry(0, self.repo.zero), after or TreeEntry(0, self.repo.zero)
        facts = f":{old.mode:06o} {new.mode:06o} {old.oid} {new.oid} {_status(before, after)}"
        return facts.encode() + b"\0" + path + b"\0"


def _status(before: TreeEntry | None, after: TreeEntry | None) -> str:
    """The letter of a change. Source: git's documentation of `--raw`."""
    if before is None:
        return "A"
    if after is None:
        return "D"
    kind = 0o170000
    return "M" if before.mode & kind == after.mode & kind else "T"
