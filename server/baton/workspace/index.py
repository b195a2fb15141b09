"""Brings an index of Baton's in line with files on disk; new objects go into the store and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from baton.workspace.store import PrivateGit

Entry = tuple[int, str, bytes]
"""Mode, object and path; mode 0 takes the path out."""


def update_index(
    repo: PrivateGit,
    index: Path,
    work_tree: Path,
    entries: Sequence[Entry],
    disk: Sequence[bytes],
    *,
    git_dir: Path | None = None,
    file_mode: bool = True,
) -> None:
    """Set the given entries, then read the given paths from disk (those that are gone are taken out)."""
    if entries:
        # Removals first: a path may take the place of a folder, or the other way round.
        lines = [b"%o %s\t%s" % (mode, oid.encode(), path) for mode, oid, path in sorted(entries)]
        repo.run(
            ["update-index", "-z", "--index-info"],
            index=index,
            git_dir=git_dir,
            # Git marks what may have changed unseen since an index was written when it writes it anew, and
            # for that it looks at the files: without them such a change would be lost.
            work_tree=work_tree,
            input=b"\0".join(lines) + b"\0",
            borrow=False,
        )
    if disk:
        settings = [] if file_mode else ["-c", "core.fileMode=false"]
        repo.run(
            [*settings, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"],
            index=index,
            git_dir=git_dir,
            work_tree=work_tree,
            input=b"\0".join(disk) + b"\0",
            borrow=False,
        )
