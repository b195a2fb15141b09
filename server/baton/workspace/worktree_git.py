"""The git directory that goes with a worktree when it is handed out: history and a tree, nobody's results.

The private repository holds the results of every run of the workspace. So a worker or a check is not shown
that, but a small directory beside the worktree: it borrows the person's own objects and holds what the commit
has beyond them.
"""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

from baton.workspace.beyond import beyond_parent
from baton.workspace.git import GitFailed
from baton.workspace.loose import write_object
from baton.workspace.sparse import absent_paths
from baton.workspace.store import PrivateGit
from baton.workspace.warm import index_at
from baton.workspace.worktree import Worktree, remove_tree

NAME = "git"
"""Its name in the worktree's slot; the worktree's `.git` file leads there."""

MOST_COPIED = 12
"""Objects that are copied one by one; more are packed."""

MOST_REMEMBERED = 1024 * 1024
"""Bytes of a pack that is remembered, to be written again for the next worktree."""

MOST_PACKS = 8

LARGEST_UNBORN = "1m"
"""Files from this size on are left out where nothing can be borrowed, lest every worktree be there twice.
Only what compares their contents with the commit's misses them."""

_PACKS: dict[tuple[Path, str, str | None], dict[str, bytes]] = {}
"""By repository, commit and the commit it is built on: the files of a pack."""

_PACKING = threading.Lock()

_CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tbare = false
\tfileMode = true
\thooksPath = /dev/null
\tfsmonitor = false
\tuntrackedCache = false
\tlogAllRefUpdates = false
[gc]
\tauto = 0
"""

_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"


def worktree_git(worktree: Worktree) -> Path:
    """Where the directory is, once `give_git` has made it."""
    return worktree.slot / NAME


def give_git(repo: PrivateGit, worktree: Worktree, commit: str, head: str | None) -> Path | None:
    """Make the directory anew for a worktree that holds `commit`; None when there is no git to be had.

    `head` is the commit of the person's that `commit` is built on, None where their HEAD is unborn. A plain
    folder has no git.
    """
    folder = worktree_git(worktree)
    remove_tree(folder)
    site = repo.site
    if site.common_dir is None:
        return None
    for part in ("objects/info", "objects/pack", "refs"):
        (folder / part).mkdir(parents=True)
    sha256 = site.object_format == "sha256"
    text = _CONFIG.format(version=1 if sha256 else 0) + (_SHA256 if sha256 else "")
    (folder / "config").write_text(text)
    (folder / "HEAD").write_text(f"{commit}\n")
    borrowed = os.fsencode(site.common_dir / "objects")
    (folder / "objects" / "info" / "alternates").write_bytes(_quoted(borrowed) + b"\n")
    if site.shallow:
        shutil.copyfile(repo.path / "shallow", folder / "shallow")
    _fill(repo, folder / "objects", commit, head)
    _put_top(repo, folder / "objects", commit, head)
    shutil.copyfile(index_at(worktree, commit), folder / "index")
    if absent_paths(repo, commit):
        # The marks of a sparse checkout take the known trees out of the index, and then git looks for them
        # among the person's objects, which a check cannot read.
        repo.run(["write-tree", "--missing-ok"], index=folder / "index")
    return folder


def _fill(repo: PrivateGit, objects: Path, commit: str, head: str | None) -> None:
    """Put in what `commit` has beyond `head`.

    What a worker has just made lies singly in the store and is copied from there. What all workers of a run
    start from is packed once.
    """
    singly: list[Path] = []
    while commit != head and (last := beyond_parent(repo, commit)) is not None:
        files = [repo.loose(oid) for oid in last.objects]
        found = [file for file in files if file is not None]
        if len(found) < len(files) or len(singly) + len(found) > MOST_COPIED:
            break
        singly += found
        commit = last.parent
    for file in singly:
        (objects / file.parent.name).mkdir(exist_ok=True)
        shutil.copyfile(file, objects / file.parent.name / file.name)
    if commit != head:
        _pack(repo, objects / "pack", commit, head)


def _put_top(repo: PrivateGit, objects: Path, commit: str, head: str | None) -> None:
    """Put in the top folder where it is that of `head`, and so not beyond it.

    A check cannot read the person's objects. The folders below it has from the index, this one it has not.
    """
    if head is None:
        return
    tree = repo.tree_of(commit)
    with suppress(GitFailed):  # of a clone that lacks even these folders of `head` nothing was left out
        if tree == repo.tree_of(head):
            write_object(
                objects, "tree", repo.run(["cat-file", "tree", tree]).stdout, repo.site.object_format
            )


def _pack(repo: PrivateGit, folder: Path, commit: str, head: str | None) -> None:
    key = (repo.path, commit, head)
    with _PACKING:
        known = _PACKS.get(key)
        if known is None:
            options = ["-q", "--no-reuse-delta", "--window=0"]
            if head is None:
                wanted = _without_large_files(repo, commit)
            else:
                wanted = f"{commit}\n^{head}\n".encode()
                options.append("--revs")
            repo.run(["pack-objects", *options, str(folder / "pack")], input=wanted)
            made = list(folder.iterdir())
            if sum(file.stat().st_size for file in made) <= MOST_REMEMBERED:
                if len(_PACKS) >= MOST_PACKS:
                    del _PACKS[next(iter(_PACKS))]
                _PACKS[key] = {file.name: file.read_bytes() for file in made}
            return
    for name, content in known.items():
        (folder / name).write_bytes(content)


def _without_large_files(repo: PrivateGit, commit: str) -> bytes:
    """The objects of a commit's whole history, a line each."""
    options = ["--objects", "--no-object-names", f"--filter=blob:limit={LARGEST_UNBORN}"]
    return repo.run(["rev-list", *options, commit]).stdout


def _quoted(path: bytes) -> bytes:
    """As git reads a line of alternates: in quotes where it would be taken for a comment or a quoted one."""
    if path[:1] not in (b"#", b'"') and b"\n" not in path:
        return path
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
