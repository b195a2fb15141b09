"""Reach an entry through directory handles, never through a link, and say exactly what it is."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from baton.workspace.names import base, parent

DIRECTORY = 0o040000
LINK = 0o120000
SUBMODULE = 0o160000
FILE = 0o100644
PROGRAM = 0o100755

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Entry:
    """What lies at a path: git's mode, and the object id of its content ("" for what git cannot hold)."""

    mode: int
    oid: str


@dataclass(frozen=True)
class Seen:
    """An entry as found, with what tells whether it has been written to since."""

    entry: Entry
    size: int
    written_ns: int
    identity: tuple[int, int]
    """Device and inode."""


class Tree:
    """A folder held open; everything below is reached from that handle. Close it or use it with `with`."""

    def __init__(self, root: Path, object_format: str = "sha1", *, file_mode: bool = True) -> None:
        """`file_mode` False means that executable bits on disk say nothing, as in git's core.fileMode."""
        self.object_format = object_format
        self.file_mode = file_mode
        self.handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self.handle)

    @contextlib.contextmanager
    def folder(self, path: bytes) -> Iterator[int]:
        """A handle on the directory at `path`.

        Raises `NotADirectoryError` when a link or a file is on the way, `FileNotFoundError` when a name is
        missing.
        """
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.dup(self.handle)
        try:
            for name in path.split(b"/") if path else ():
                inner = _open_folder(name, flags, handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    def look(self, path: bytes) -> Seen | None:
        """What lies at `path`, its content read and hashed; None when nothing does or its folder is none."""
        try:
            with self.folder(parent(path)) as folder:
                return self.look_in(folder, base(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def look_in(self, folder: int, name: bytes) -> Seen | None:
        """As `look`, for a name in an open directory."""
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(name, dir_fd=folder)
            return _seen(Entry(LINK, self.blob_id(target)), found)
        if stat.S_ISDIR(found.st_mode):
            return _seen(Entry(DIRECTORY, ""), found)
        if not stat.S_ISREG(found.st_mode):
            return _seen(Entry(stat.S_IFMT(found.st_mode), ""), found)
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(handle, "rb", buffering=0) as stream:
            opened = os.fstat(stream.fileno())
            digest = hashlib.new(self.object_format, b"blob %d\0" % opened.st_size)
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
        mode = PROGRAM if opened.st_mode & 0o100 else FILE
        return _seen(Entry(mode, digest.hexdigest()), opened)

    def blob_id(self, data: bytes) -> str:
        """The object id that git gives to these bytes."""
        return hashlib.new(self.object_format, b"blob %d\0" % len(data) + data).hexdigest()

    def same(self, one: Entry | None, other: Entry | None) -> bool:
        """Whether two entries are the same to git here."""
        if one is None or other is None or one == other:
            return one is other or one == other
        files = (FILE, PROGRAM)
        return not self.file_mode and one.oid == other.oid and one.mode in files and other.mode in files


def _open_folder(name: bytes, flags: int, above: int) -> int:
    try:
        return os.open(name, flags, dir_fd=above)
    except OSError as error:
        # What a link answers to O_NOFOLLOW differs between systems.
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fsdecode(name)) from None
        raise


def _seen(entry: Entry, found: os.stat_result) -> Seen:
    return Seen(entry, found.st_size, found.st_mtime_ns, (found.st_dev, found.st_ino))
