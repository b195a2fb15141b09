"""Single objects and refs of a private repository without a start of git, in its form and as durably.

For what happens several times with every task: a start of git costs more than all it does then.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import zlib
from pathlib import Path

_LONGEST_HEAD = 32
"""Bytes before an object's content: its kind, its size and a zero."""


def is_oid(name: str) -> bool:
    """Whether a name is a whole object id, which always names the same."""
    return re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", name) is not None


def write_object(store: Path, kind: str, content: bytes, object_format: str) -> str:
    """Write a loose object into a folder of objects; its id."""
    data = b"%s %d\0" % (kind.encode(), len(content)) + content
    oid = hashlib.new(
        "sha256" if object_format == "sha256" else "sha1", data, usedforsecurity=False
    ).hexdigest()
    folder = store / oid[:2]
    path = folder / oid[2:]
    with contextlib.suppress(FileNotFoundError, zlib.error):
        os.utime(path)  # as git does, so that an object about to be used is not collected
        if zlib.decompress(path.read_bytes()) == data:  # and not what a loss of power left of it
            return oid
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        sync_folder(store)
    handle, name = tempfile.mkstemp(prefix="tmp_obj_", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(zlib.compress(data))
            os.fchmod(file.fileno(), 0o444)
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(folder)
    return oid


def blob_id(path: bytes, object_format: str) -> str:
    """The id that the content of a file, or the text of a link, has as an object. Raises `OSError`."""
    digest = hashlib.new("sha256" if object_format == "sha256" else "sha1", usedforsecurity=False)
    if os.path.islink(path):
        text = os.readlink(path)
        digest.update(b"blob %d\0" % len(text) + text)
        return digest.hexdigest()
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        digest.update(b"blob %d\0" % os.fstat(file.fileno()).st_size)
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def read_loose(file: Path, most: int) -> bytes | None:
    """The content of an object's own file, None for one of more than `most` bytes.

    Raises `OSError` or `zlib.error` for one that is damaged.
    """
    stream = zlib.decompressobj()
    head, _, content = stream.decompress(file.read_bytes(), most + _LONGEST_HEAD).partition(b"\0")
    size = int(head.rpartition(b" ")[2] or b"0")
    if size > most:
        return None
    if not stream.eof or len(content) != size:
        raise zlib.error("the object is cut short")
    return content


def write_ref(git_dir: Path, ref: str, oid: str) -> bool:
    """Let a ref name an object; False when only git itself can say whether and how that is to be done.

    It is when somebody holds the ref's lock, when refs are packed, or when the name is in another's way.
    """
    path = git_dir / ref
    if (git_dir / "packed-refs").exists() or not ref.startswith("refs/") or path.is_dir():
        return False
    lock = path.with_name(path.name + ".lock")
    try:
        _make_folder(path.parent)
        handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except (FileExistsError, NotADirectoryError):
        return False
    try:
        with os.fdopen(handle, "w") as file:
            file.write(oid + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(lock, path)
    except BaseException:
        lock.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return True


def write_head(admin: Path, commit: str) -> None:
    """Let a worktree's HEAD name a commit, detached; it is made anew after a crash, so nothing is synced."""
    new = admin / "HEAD.new"
    new.write_text(commit + "\n")
    new.replace(admin / "HEAD")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)
