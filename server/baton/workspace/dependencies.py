"""Brings dependency folders (node_modules, .venv, …) into a worktree: linked to the person's, or copied."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from baton.contract.errors import StateUnavailable
from baton.workspace.store import PrivateGit
from baton.workspace.tree_paths import tree_paths
from baton.workspace.worktree import Worktree, record_links, recorded_links

_FICLONE = 0x40049409

SEEN_SECONDS = 2.0
"""How long the list of dependency folders is used again; each is still looked at when it is linked."""

SEEN_TIMES = 50
"""It is used for so many times as long as it took to make, where that is longer."""

_SEEN: dict[tuple[Path, frozenset[bytes]], tuple[float, list[bytes]]] = {}
"""Until when what was seen is used."""

_LOOKING = threading.Lock()


def link_dependencies(
    repo: PrivateGit, worktree: Worktree, folders: Sequence[str], mode: Literal["link", "copy", "none"]
) -> tuple[Path, ...]:
    """Make the person's dependency folders of these names available in the worktree; returns what was made.

    Only folders git does not track are taken, at any depth. A link leads to the person's own folder, which
    lies outside every write root of a worker. What is made is remembered with the worktree and left out of
    captures.
    """
    if mode == "none" or not folders:
        return ()
    made: dict[bytes, bytes] = {}
    for path in _untracked_folders(repo, frozenset(os.fsencode(name) for name in folders)):
        source = repo.site.root / os.fsdecode(path)
        target = worktree.root / os.fsdecode(path)
        if not source.is_dir() or os.path.lexists(target) or not _reachable(worktree, target):
            continue
        if mode == "link":
            target.symlink_to(source.resolve(), target_is_directory=True)
            made[path] = os.readlink(os.fsencode(target))
        else:
            _copy_tree(source, target)
            made[path] = b""
    record_links(worktree, {**recorded_links(worktree), **made})
    return tuple(worktree.root / os.fsdecode(path) for path in made)


def may_be_linked(
    repo: PrivateGit, worktree: Worktree, commit: str, made: Iterable[Path], name: str
) -> tuple[Path, ...]:
    """Where a clean checkout of a commit can have a link of that name.

    One of those that were `made` in it, or one that is tracked (as may be a file of that name).
    """
    paths, wanted = tree_paths(repo, commit), os.fsencode(name)
    possible = (wanted, *(folder + b"/" + wanted for folder in paths.folders))
    found = {*made, *(worktree.root / os.fsdecode(path) for path in possible if path in paths.files)}
    return tuple(sorted(path for path in found if path.name == name))


def link_submodules(repo: PrivateGit, worktree: Worktree, paths: Sequence[bytes]) -> tuple[Path, ...]:
    """Let submodules of the worktree lead to the person's checkouts of them, read-only to a worker."""
    made: dict[bytes, bytes] = {}
    for path in paths:
        source = repo.site.root / os.fsdecode(path)
        target = worktree.root / os.fsdecode(path)
        if not source.is_dir() or target.is_symlink() or not target.is_dir() or any(target.iterdir()):
            continue
        target.rmdir()
        target.symlink_to(source.resolve(), target_is_directory=True)
        made[path] = os.readlink(os.fsencode(target))
    record_links(worktree, {**recorded_links(worktree), **made})
    return tuple(worktree.root / os.fsdecode(path) for path in made)


def _untracked_folders(repo: PrivateGit, names: frozenset[bytes]) -> list[bytes]:
    """As `_look_for_folders`; what was seen a moment ago serves a whole wave of worktrees."""
    key = (repo.path, names)
    with _LOOKING:  # a second one who needs it waits for the first to have looked
        seen = _SEEN.get(key)
        if seen is None or time.monotonic() > seen[0]:
            began = time.monotonic()
            found = _look_for_folders(repo, names)
            ended = time.monotonic()
            seen = _SEEN[key] = (ended + max(SEEN_SECONDS, SEEN_TIMES * (ended - began)), found)
    return seen[1]


def _look_for_folders(repo: PrivateGit, names: frozenset[bytes]) -> list[bytes]:
    """Paths of ignored or untracked folders with one of these names, and of links to such folders."""
    site = repo.site
    found = set()
    for options in (["-i"], []):
        listing = ["ls-files", "-z", "-o", *options, "--exclude-standard", "--directory"]
        if site.kind == "git":
            raw = repo.git.theirs(listing, cwd=site.root).stdout
        else:
            raw = repo.run(listing, index=repo.path / "indexes" / "none", work_tree=site.root).stdout
        for path in raw.split(b"\0"):
            bare = path.rstrip(b"/")
            if bare.rpartition(b"/")[2] in names:
                found.add(bare)
    return sorted(found)


def _reachable(worktree: Worktree, target: Path) -> bool:
    """Whether the target's parent is a real folder of the worktree."""
    parent = target.parent
    return parent.is_dir() and parent.resolve().is_relative_to(worktree.root.resolve())


def _copy_tree(source: Path, target: Path) -> None:
    try:
        shutil.copytree(
            source, target, symlinks=True, copy_function=_copy_file, ignore_dangling_symlinks=True
        )
    except (OSError, shutil.Error) as error:
        raise StateUnavailable(f"cannot copy {source} into a worktree: {error}") from None


def _copy_file(source: str, target: str, *, follow_symlinks: bool = True) -> str:
    """Share the blocks where the file system can, else copy the bytes."""
    if not follow_symlinks:
        return str(shutil.copy2(source, target, follow_symlinks=False))
    with contextlib.suppress(OSError, ImportError):
        import fcntl

        with Path(source).open("rb") as old, Path(target).open("wb") as new:
            fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        shutil.copystat(source, target)
        return target
    return str(shutil.copy2(source, target))
