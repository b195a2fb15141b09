"""Merges several results at once that touch different paths: a handful of git commands for all of them.

A result that shares a path with the workspace's own changes, or with a result before it, is left for the
merge of contents in `merge.py`. Where nobody else touched a path both give the same tree.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from baton.workspace.changes import without_folders
from baton.workspace.index import Entry
from baton.workspace.sparse import inherit_absent
from baton.workspace.store import PrivateGit
from baton.workspace.tree_paths import note_changed

Side = dict[bytes, tuple[int, str]]
"""What one side changed: mode and object by path, mode 0 for a path that is gone."""


@dataclass(frozen=True)
class Overlay:
    """A merge of those of the results that are disjoint."""

    commit: str
    tree: str
    taken: tuple[int, ...]
    """Which results are in it, by their place in the list given."""


def merge_disjoint(
    repo: PrivateGit, base_tree: str, ours: str, ours_tree: str, theirs: Sequence[str], message: str, ref: str
) -> Overlay | None:
    """Carry over to commit `ours` what each of the commits `theirs` changed since the tree `base_tree`.

    The result's parents are `ours` and the commits taken; it is named by `ref`. None when not even two of
    them can be had this way.
    """
    if len(theirs) < 2:
        return None
    sides = _changes(repo, base_tree, [ours_tree, *(f"{commit}^{{tree}}" for commit in theirs)])
    touched = _Touched()
    touched.add(sides[0])
    taken = []
    for number, side in enumerate(sides[1:]):
        if touched.is_clear_of(side):
            touched.add(side)
            taken.append(number)
    if len(taken) < 2:
        return None
    entries: list[Entry] = [
        (mode, oid, path) for number in taken for path, (mode, oid) in sides[number + 1].items()
    ]
    tree = _tree_with(repo, ours_tree, entries)
    raw = repo.raw_changes(ours_tree, tree)
    repo.keep(tree, ours_tree, raw)
    commit = repo.commit_tree(tree, [ours, *(theirs[number] for number in taken)], message)
    inherit_absent(repo, commit, ours)
    note_changed(repo, ours, commit, without_folders(raw))
    repo.set_ref(ref, commit)
    return Overlay(commit, tree, tuple(taken))


@dataclass
class _Touched:
    paths: set[bytes] = field(default_factory=set)
    folders: set[bytes] = field(default_factory=set)
    """Every folder above a touched path: none of them may become a file."""

    def add(self, paths: Iterable[bytes]) -> None:
        for path in paths:
            self.paths.add(path)
            self.folders.update(_above(path))

    def is_clear_of(self, paths: Iterable[bytes]) -> bool:
        return not any(
            path in self.paths or path in self.folders or not self.paths.isdisjoint(_above(path))
            for path in paths
        )


def _above(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(1, len(parts))]


def _changes(repo: PrivateGit, base_tree: str, others: Sequence[str]) -> list[Side]:
    """What each of the trees changed against the base, in one go."""
    names = repo.run(["rev-parse", base_tree, *others]).stdout.decode().split()
    lines = "".join(f"{names[0]} {name}\n" for name in names[1:])
    options = ["-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none"]
    raw = repo.run(["diff-tree", "--stdin", *options], input=lines.encode()).stdout
    return parse_many(raw)


def parse_many(raw: bytes) -> list[Side]:
    """Read `git diff-tree --stdin --raw -z`: a line with the two trees before the changes between them."""
    sides: list[Side] = []
    fields = iter(raw.split(b"\0"))
    for head in fields:
        while head and not head.startswith(b":"):
            _, _, head = head.partition(b"\n")
            sides.append({})
        if head:
            _, mode, _, oid, _ = head[1:].decode().split(" ")
            sides[-1][next(fields)] = (int(mode, 8), oid)
    return sides


def _tree_with(repo: PrivateGit, tree: str, entries: list[Entry]) -> str:
    """`tree` with these entries put over it."""
    with tempfile.TemporaryDirectory(prefix="overlay-", dir=repo.path / "indexes") as folder:
        index = Path(folder) / "index"
        repo.run(["read-tree", tree], index=index)
        # Removals first: a path may take the place of a folder, or the other way round.
        lines = [b"%o %s\t%s" % (mode, oid.encode(), path) for mode, oid, path in sorted(entries)]
        given = b"".join(line + b"\0" for line in lines)
        repo.run(["update-index", "-z", "--index-info"], index=index, input=given)
        return repo.run(["write-tree", "--missing-ok"], index=index).stdout.decode().strip()
