"""Compares two trees: what changed inside the workspace, what outside of it, and how it reads as a diff."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import replace

from baton.contract.tree import ChangeKind, TreeChange
from baton.workspace.store import PrivateGit

FOLDER = 0o040000

_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--ignore-submodules=none")


def changes_between(repo: PrivateGit, old: str, new: str) -> tuple[TreeChange, ...]:
    """What differs inside the workspace, paths relative to it; a move into or out of it is not a rename."""
    relative = [b"--relative=" + repo.site.prefix] if repo.site.prefix else []
    raw = repo.run([*_RAW, "-M", "-l1000", *relative, old, new]).stdout
    return tuple(parse_raw(raw))


def without_folders(raw: bytes) -> list[TreeChange]:
    """The changes of `raw_changes`, paths relative to the repository's root, but for those of folders."""
    return [change for change in parse_raw(raw) if FOLDER not in (change.old_mode, change.new_mode)]


def changes_inside(
    repo: PrivateGit, old: str, new: str, changed: Sequence[TreeChange]
) -> tuple[TreeChange, ...]:
    """As `changes_between`, where it is known already what changed; asks git only whether something moved."""
    prefix = repo.site.prefix
    inside = [change for change in changed if change.path.startswith(prefix)]
    came_and_went = {change.kind for change in inside} >= {ChangeKind.ADDED, ChangeKind.DELETED}
    if came_and_went:
        return changes_between(repo, old, new)
    return tuple(replace(change, path=change.path.removeprefix(prefix)) for change in inside)


def outside_between(repo: PrivateGit, old: str, new: str) -> tuple[bytes, ...]:
    """Paths that differ outside the workspace, relative to the repository's root."""
    if not repo.site.prefix:
        return ()
    raw = repo.run([*_RAW, "--no-renames", old, new]).stdout
    return tuple(change.path for change in parse_raw(raw) if not change.path.startswith(repo.site.prefix))


def diff(repo: PrivateGit, old: str, new: str, paths: Sequence[bytes] = (), *, binary: bool = False) -> bytes:
    """A unified diff of the workspace, cut at the limit with a last line that says so.

    `paths` are relative to the workspace. No program of anybody's is run for it.
    """
    options: list[str | bytes] = ["-p", "-M", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index"]
    if binary:
        options.append("--binary")
    if repo.site.prefix:
        options.append(b"--relative=" + repo.site.prefix)
    chosen = [repo.site.prefix + path for path in paths]
    out = repo.run(["diff-tree", "-r", *options, old, new, "--", *chosen], max_output=repo.limits.diff_bytes)
    if not out.cut:
        return out.stdout
    return out.stdout + b"\n[cut: the diff is longer than %d bytes]\n" % repo.limits.diff_bytes


def parse_raw(raw: bytes) -> list[TreeChange]:
    """Read `git diff-tree --raw -z`."""
    fields = iter(raw.split(b"\0"))
    changes = []
    for head in fields:
        if not head.startswith(b":"):
            continue
        old_mode, new_mode, old_oid, new_oid, status = head[1:].decode().split(" ")
        path = next(fields)
        old_path = None
        if status[0] in "RC":
            old_path, path = path, next(fields)
        modes = int(old_mode, 8), int(new_mode, 8)
        kind = _kind(status[0], *modes, same=old_oid == new_oid)
        changes.append(TreeChange(path, kind, *modes, old_oid, new_oid, old_path))
    return changes


def _kind(status: str, old_mode: int, new_mode: int, *, same: bool) -> ChangeKind:
    if status == "A":
        return ChangeKind.ADDED
    if status == "D":
        return ChangeKind.DELETED
    if status == "R":
        return ChangeKind.RENAMED
    if stat.S_IFMT(old_mode) != stat.S_IFMT(new_mode):
        return ChangeKind.TYPE
    return ChangeKind.MODE if same else ChangeKind.MODIFIED
