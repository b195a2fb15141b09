"""The git directory that goes with a worktree when it is handed out: history and a tree, nobody's results.

The private repository holds the results of every run of the workspace. So a worker or a check is not shown
that, but a small directory beside the worktree: it borrows the person's own objects and holds what the commit
has beyond them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from baton.workspace.beyond import objects_beyond
from baton.workspace.store import PrivateGit
from baton.workspace.worktree import Worktree, remove_tree

NAME = "git"
"""Its name in the worktree's slot; the worktree's `.git` file leads there."""

MOST_COPIED = 100
"""Objects that are copied one by one; beyond that git packs them faster."""

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

    `head` is the commit of the person's that `commit` is built on. Without one (a plain folder, an unborn
    HEAD, a clone whose history is incomplete) nothing could be borrowed, so there is none.
    """
    folder = worktree_git(worktree)
    remove_tree(folder)
    site = repo.site
    if head is None or site.common_dir is None or site.shallow or site.partial:
        return None
    for part in ("objects/info", "objects/pack", "refs"):
        (folder / part).mkdir(parents=True)
    sha256 = site.object_format == "sha256"
    text = _CONFIG.format(version=1 if sha256 else 0) + (_SHA256 if sha256 else "")
    (folder / "config").write_text(text)
    (folder / "HEAD").write_text(f"{commit}\n")
    borrowed = os.fsencode(site.common_dir / "objects")
    (folder / "objects" / "info" / "alternates").write_bytes(_quoted(borrowed) + b"\n")
    if not _copy_singly(repo, folder / "objects", commit, head):
        wanted = f"{commit}\n^{head}\n".encode()
        target = str(folder / "objects" / "pack" / "pack")
        repo.run(["pack-objects", "-q", "--revs", "--no-reuse-delta", "--window=0", target], input=wanted)
    shutil.copyfile(worktree.index, folder / "index")
    return folder


def _copy_singly(repo: PrivateGit, objects: Path, commit: str, head: str) -> bool:
    """Copy the objects as they lie in the store; False when they are too many or some lie there in a pack."""
    wanted = objects_beyond(repo, commit, head)
    files = [repo.loose(oid) for oid in wanted] if len(wanted) <= MOST_COPIED else [None]
    for file in files:
        if file is None:
            return False
        target = objects / file.parent.name
        target.mkdir(exist_ok=True)
        shutil.copyfile(file, target / file.name)
    return True


def _quoted(path: bytes) -> bytes:
    """As git reads a line of alternates: in quotes where it would be taken for a comment or a quoted one."""
    if path[:1] not in (b"#", b'"') and b"\n" not in path:
        return path
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
