"""Small trees in memory, on disk, and the changes between two of them."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st

from baton.contract.tree import ChangeKind, TreeChange

FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000

Files = dict[bytes, tuple[int, bytes]]
"""Mode and content by path; a link's content is its target."""


def blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@dataclass
class MemoryBlobs:
    contents: dict[str, bytes] = field(default_factory=dict)

    def read(self, oid: str) -> bytes:
        return self.contents[oid]


def blobs_of(files: Files) -> MemoryBlobs:
    return MemoryBlobs({blob_id(data): data for _, data in files.values()})


def changes_between(old: Files, new: Files) -> list[TreeChange]:
    changes = []
    for path in sorted({*old, *new}):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        kind = (
            ChangeKind.ADDED
            if before is None
            else ChangeKind.DELETED
            if after is None
            else ChangeKind.MODIFIED
        )
        sides = [(0, "0" * 40) if side is None else (side[0], blob_id(side[1])) for side in (before, after)]
        changes.append(TreeChange(path, kind, sides[0][0], sides[1][0], sides[0][1], sides[1][1]))
    return changes


def write_files(root: Path, files: Files) -> None:
    for path, (mode, data) in files.items():
        full = root / os.fsdecode(path)
        full.parent.mkdir(parents=True, exist_ok=True)
        if mode == LINK:
            full.symlink_to(os.fsdecode(data))
        else:
            full.write_bytes(data)
            full.chmod(0o755 if mode == PROGRAM else 0o644)


def make_tree(root: Path, files: Files) -> Path:
    if root.exists():
        shutil.rmtree(root)
    root.mkdir(parents=True)
    write_files(root, files)
    return root


def read_files(root: Path) -> Files:
    found: Files = {}
    for full in _everything(root):
        mode = full.lstat().st_mode
        path = os.fsencode(full.relative_to(root))
        if stat.S_ISLNK(mode):
            found[path] = (LINK, os.fsencode(full.readlink()))
        elif stat.S_ISREG(mode):
            found[path] = (PROGRAM if mode & 0o100 else FILE, full.read_bytes())
    return found


def read_folders(root: Path) -> set[bytes]:
    return {
        os.fsencode(full.relative_to(root))
        for full in _everything(root)
        if stat.S_ISDIR(full.lstat().st_mode)
    }


def _everything(root: Path) -> Iterator[Path]:
    for folder, names, leaves in os.walk(root):
        yield from (Path(folder) / name for name in [*names, *leaves])


def folders_of(files: Files) -> set[bytes]:
    found: set[bytes] = set()
    for path in files:
        names = path.split(b"/")
        found |= {b"/".join(names[:count]) for count in range(1, len(names))}
    return found


def _without_clashes(files: Files) -> Files:
    folders = folders_of(files)
    return {path: entry for path, entry in files.items() if path not in folders}


NAMES = st.sampled_from([b"a", b"b", b"c", b"\xff\xfe", b"new\nline", b"d e"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
CONTENT = st.binary(max_size=3) | st.sampled_from([b"x" * 5000, b"same"])
ENTRIES = st.tuples(st.sampled_from([FILE, FILE, PROGRAM]), CONTENT) | st.tuples(
    st.just(LINK), st.sampled_from([b"a", b"../a", b"/nowhere", b"c/d"])
)
TREES = st.dictionaries(PATHS, ENTRIES, max_size=8).map(_without_clashes)
