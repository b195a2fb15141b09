"""What stays read-only inside writable directories: forbidden entries, then whatever the scope does not name.

Only existing entries can be made read-only, each by a mount of its own, so their number is limited; what is
left out is said. A mount protects a name, not the directories above it: those are pinned, else they could be
renamed away with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from baton.contract.tree import show_path
from baton.workspace.names import join, parent
from baton.workspace.pattern import Pattern
from baton.workspace.scope import EXPLICIT_ONLY, NEVER_WRITABLE, Scope

MAX_VISITED = 50_000
"""Entries looked at in all; a scope that needs more is left to detection."""

States = list[tuple[Pattern, frozenset[int]]]


@dataclass
class Protection:
    """What to make read-only, and what could not be. Paths are relative to the worktree folder."""

    readonly: set[bytes] = field(default_factory=set)
    pins: set[bytes] = field(default_factory=set)
    """Directories between a writable root and something read-only."""
    unprotected: list[str] = field(default_factory=list)
    """What exists, is out of scope and stays writable; each a short phrase."""


def protect(scope: Scope, cwd: Path, roots: Iterable[bytes], siblings: int, entries: int) -> Protection:
    """Choose at most `entries` read-only and pinned paths inside `roots`, `siblings` in one directory.

    Reads directories without following links, changes nothing.
    """
    walk = _Walk(os.fsencode(cwd), entries)
    for root in roots:
        allowed: States = [(pattern, pattern.state_at(root)) for pattern in scope.allowed]
        forbidden: States = [(pattern, pattern.state_at(root)) for pattern in scope.forbidden]
        walk.visit(root, root, allowed, forbidden)
    chosen = Protection(unprotected=walk.unprotected)
    _choose(chosen, walk.forbidden, "forbidden entries", entries)
    for folder, group in sorted(walk.siblings.items(), key=lambda item: len(item[1])):
        place = show_path(folder) or "the workspace folder"
        if len(group) > siblings:
            chosen.unprotected.append(
                f"the other {len(group)} entries of {place}, too many to make read-only"
            )
        else:
            _choose(chosen, group, f"other entries of {place}", entries)
    return chosen


def _choose(chosen: Protection, group: list[tuple[bytes, bytes]], what: str, entries: int) -> None:
    """Take the whole group or none: half a fence would only look like one."""
    readonly = {path for path, _ in group}
    pins = {pin for path, root in group for pin in _between(root, path)}
    total = len(chosen.readonly | readonly) + len(chosen.pins | pins)
    if total > entries:
        chosen.unprotected.append(f"{len(group)} {what}, too many to make read-only")
        return
    chosen.readonly |= readonly
    chosen.pins |= pins


def _between(root: bytes, path: bytes) -> Iterable[bytes]:
    above = parent(path)
    while above != root:
        yield above
        above = parent(above)


class _Walk:
    """One pass over the writable roots that sorts entries into forbidden ones and mere siblings."""

    def __init__(self, top: bytes, entries: int) -> None:
        self.top = top
        self.entries = entries
        self.visited = 0
        self.forbidden: list[tuple[bytes, bytes]] = []
        self.siblings: dict[bytes, list[tuple[bytes, bytes]]] = {}
        self.sibling_count = 0
        self.unprotected: list[str] = []

    def visit(self, root: bytes, folder: bytes, allowed: States, forbidden: States) -> None:
        covered = any(pattern.covers_directory(states) for pattern, states in allowed)
        # Past the limit no more siblings would be taken: go on only where something is forbidden.
        settled = covered or self.sibling_count > self.entries * 4
        if settled and not any(states for _, states in forbidden):
            return
        for entry in self._listing(folder):
            inner_allowed = _step(allowed, entry.name)
            inner_forbidden = _step(forbidden, entry.name)
            path = join(folder, entry.name)
            directory = entry.is_dir(follow_symlinks=False)
            if _special(entry.name, inner_allowed):
                # Directly in a writable root Codex itself keeps these read-only.
                if folder != root:
                    self._add(self.forbidden, path, root, entry)
            elif _covers(inner_forbidden, directory):
                self._add(self.forbidden, path, root, entry)
            elif directory and any(states for _, states in inner_allowed):
                self.visit(root, path, inner_allowed, inner_forbidden)
            elif directory or not _covers(inner_allowed, directory):
                self.sibling_count += self._add(self.siblings.setdefault(folder, []), path, root, entry)

    def _listing(self, folder: bytes) -> list[os.DirEntry[bytes]]:
        if self.visited > MAX_VISITED:
            return []
        try:
            with os.scandir(self.top + b"/" + folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except FileNotFoundError:
            return []  # a root that is still to be made
        self.visited += len(entries)
        if self.visited > MAX_VISITED:
            self.unprotected.append(f"more than {MAX_VISITED} entries, too many to look at")
            return []
        return entries

    def _add(
        self, group: list[tuple[bytes, bytes]], path: bytes, root: bytes, entry: os.DirEntry[bytes]
    ) -> bool:
        if entry.is_symlink():
            # A mount would follow the link and leave its name unprotected.
            self.unprotected.append(f"the symbolic link {show_path(path)}")
            return False
        try:
            path.decode()
        except UnicodeDecodeError:
            self.unprotected.append(f"{show_path(path)}, whose name is not UTF-8")
            return False
        group.append((path, root))
        return True


def _step(states: States, name: bytes) -> States:
    return [(pattern, pattern.step(state, name)) for pattern, state in states if state]


def _covers(states: States, directory: bool) -> bool:
    return any(
        pattern.covers_directory(state) if directory else pattern.covers_file(state)
        for pattern, state in states
    )


def _special(name: bytes, allowed: States) -> bool:
    if name.lower() == NEVER_WRITABLE:
        return True
    named = any(state and name in pattern.literal_names for pattern, state in allowed)
    return name in EXPLICIT_ONLY and not named
