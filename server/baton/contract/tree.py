"""Trees, snapshots and captures; paths are bytes as git knows them until they are shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class ChangeKind(StrEnum):
    """How a path differs between two trees."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"
    MODE = "mode"
    TYPE = "type"


@dataclass(frozen=True)
class TreeChange:
    """One path that differs between two trees. Modes are git's (0o100644, 0o120000 …), 0 when absent."""

    path: bytes
    """Relative to the workspace."""
    kind: ChangeKind
    old_mode: int
    new_mode: int
    old_oid: str
    new_oid: str
    old_path: bytes | None = None
    """Where a renamed file came from. Scope judges both ends."""

    @property
    def touched(self) -> tuple[bytes, ...]:
        return (self.path,) if self.old_path is None else (self.old_path, self.path)


@dataclass(frozen=True)
class Snapshot:
    """A workspace's state at one moment, kept in the private repository."""

    commit: str
    tree: str
    """The tree of the whole repository's work tree, bytes on disk."""
    head: str | None
    """The person's HEAD commit, None when unborn or a plain folder."""
    submodules: tuple[bytes, ...] = ()
    """Submodules, relative to the repository root: recorded as pointers, empty in a worktree."""
    nested: tuple[bytes, ...] = ()
    """Untracked repositories inside, relative to the root: not part of the snapshot."""
    notes: tuple[str, ...] = ()
    """What a person should know of this snapshot, one line each."""


@dataclass(frozen=True)
class Capture:
    """What a worktree held when its worker had ended: the record of what the worker did."""

    commit: str
    tree: str
    changes: tuple[TreeChange, ...]
    ignored: tuple[bytes, ...] = ()
    """Paths the worker made that the repository ignores: listed, kept apart, never applied."""
    nested: tuple[bytes, ...] = ()
    """Nested repositories the worker made: listed, kept apart, never applied."""
    leaving_links: tuple[bytes, ...] = ()
    """Symbolic links whose target leaves the workspace: a violation."""
    outside: tuple[bytes, ...] = ()
    """Paths changed in the worktree but outside the workspace folder, relative to the repository root."""
    unsupported: tuple[bytes, ...] = ()
    """Paths git cannot hold (sockets, fifos, devices, unreadable ones): listed, not kept."""
    aside: Path | None = None
    """Folder that keeps ignored and nested content up to the policy's limit."""
    aside_cut: bool = False
    """True when the limit left some of it out."""
    over_limit: str | None = None
    """One line when the worker made more than is captured: the tree is then incomplete, a violation."""


@dataclass(frozen=True)
class MergeConflict:
    """One path on which two sides differ; both sides stay retrievable."""

    path: bytes
    detail: str
    """Git's own kind of conflict: content, modify/delete, add/add, directory/file …"""


@dataclass(frozen=True)
class Merge:
    """The outcome of merging a result onto a snapshot: a commit, or conflicts."""

    commit: str | None
    tree: str | None
    conflicts: tuple[MergeConflict, ...] = ()


@dataclass(frozen=True)
class Applied:
    """What an apply did to the workspace."""

    changed: tuple[bytes, ...] = field(default=())
    backups: Path | None = None


def show_path(path: bytes) -> str:
    """A path for people and models: UTF-8 as it is, other bytes and control characters as \\xNN."""
    shown = []
    for char in path.decode("utf-8", "surrogateescape"):
        code = ord(char)
        if 0xDC80 <= code <= 0xDCFF:
            shown.append(f"\\x{code - 0xDC00:02x}")
        elif char.isprintable():
            shown.append("\\\\" if char == "\\" else char)
        else:
            shown.append("".join(f"\\x{byte:02x}" for byte in char.encode()))
    return "".join(shown)
