"""Writes a few files of a commit as git checks them out, without an index: git reads the whole of one."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path

from baton.workspace.changes import without_folders
from baton.workspace.index import update_index
from baton.workspace.listing import EXECUTABLE, LINK, PLAIN
from baton.workspace.loose import read_loose
from baton.workspace.store import PrivateGit
from baton.workspace.tree_objects import read_folders
from baton.workspace.tree_paths import folders_of
from baton.workspace.worktree import Worktree

MOST_BYTES = 1 << 20
"""Of all contents that are not in files of their own, and of each that is; with more it is left to git."""

MOST_TOGETHER = 1 << 25
"""Bytes of all contents."""

MOST_FILES = 200
"""That are brought from one commit to another singly."""


def check_out(repo: PrivateGit, root: Path, commit: str, paths: Collection[bytes]) -> bool:
    """Write these files and links of a commit below `root`, in place of whatever has their names.

    False, and nothing is written, where git has to do it: when one is no file of the commit or they are
    large. The folders must be there, and no link in the place of one. Raises `OSError`.
    """
    if any(b"\n" in path for path in paths):
        return False
    folders = read_folders(repo, repo.tree_of(commit), {b"", *folders_of(paths)})
    entries = []
    for path in paths:
        folder, _, name = path.rpartition(b"/")
        entry = folders.get(folder, {}).get(name)
        if entry is None or entry.mode not in (PLAIN, EXECUTABLE, LINK):
            return False
        entries.append(entry)
    contents = _contents(repo, [entry.oid for entry in entries])
    if contents is None:
        return False
    for path, entry in zip(paths, entries, strict=True):
        _write(os.fsencode(root) + b"/" + path, entry.mode, contents[entry.oid])
    return True


def advance(repo: PrivateGit, worktree: Worktree, old: str, new: str) -> bool:
    """Bring the files and the index of a clean worktree from commit `old` to `new`, not its HEAD.

    False, and nothing is done, where git has to do it: when something goes or changes its kind, or there is
    much of it. Raises `OSError` and `GitFailed`; part of it may be done then.
    """
    before, after = repo.tree_of(old), repo.tree_of(new)
    if before == after:
        return True
    changed = without_folders(repo.raw_changes(before, after))
    kinds = (PLAIN, EXECUTABLE, LINK)
    if len(changed) > MOST_FILES or any(
        one.new_mode not in kinds or one.old_mode not in (0, *kinds) for one in changed
    ):
        return False
    paths = [one.path for one in changed]
    top = os.fsencode(worktree.root) + b"/"
    for folder in sorted(folders_of(paths)):
        with contextlib.suppress(FileExistsError):
            os.mkdir(top + folder)
    if not check_out(repo, worktree.root, new, paths):
        return False
    update_index(repo, worktree.index, worktree.root, [], paths, git_dir=worktree.admin)
    return True


def _contents(repo: PrivateGit, oids: Sequence[str]) -> dict[str, bytes] | None:
    found: dict[str, bytes] = {}
    total = 0
    for oid in dict.fromkeys(oids):
        file = repo.loose(oid)
        if file is None:
            continue
        if file.stat().st_size > MOST_BYTES:
            return None
        with contextlib.suppress(zlib.error):
            content = read_loose(file, MOST_BYTES)
            if content is None or total + len(content) > MOST_TOGETHER:
                return None
            found[oid], total = content, total + len(content)
    wanted = [oid for oid in dict.fromkeys(oids) if oid not in found]
    if wanted:
        given = "".join(f"{oid}\n" for oid in wanted).encode()
        answer = repo.run(["cat-file", "--batch"], input=given, max_output=MOST_BYTES)
        at = 0
        for oid in wanted if not answer.cut else ():
            end = answer.stdout.index(b"\n", at)
            facts = answer.stdout[at:end].split(b" ")
            if facts[1] != b"blob":
                return None
            at = end + 1 + int(facts[2])
            found[oid] = answer.stdout[end + 1 : at]
            at += 1
    return found if len(found) == len(set(oids)) else None


def _write(path: bytes, mode: int, content: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    if mode == LINK:
        os.symlink(content, path)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o777 if mode == EXECUTABLE else 0o666), "wb") as file:
        file.write(content)
