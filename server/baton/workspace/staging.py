"""Fill the slots of a journal with what goes into the workspace, durable before anything there moves."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from typing import Protocol

from baton.workspace.journal import Act, Journal, Operation, sync_folder
from baton.workspace.names import base, parent, parents
from baton.workspace.pathwalk import FILE, LINK, PROGRAM, Tree


class BlobSource(Protocol):
    """Where the content of the result comes from."""

    def read(self, oid: str) -> bytes:
        """The content of a blob. Raises a `BatonError` when it is missing."""
        ...


def stage(journal: Journal, tree: Tree, operation: Operation, blobs: BlobSource) -> None:
    """Make what `operation` brings in, with the mode, owner and extended attributes of what it replaces."""
    if operation.new is None:
        return
    slot = journal.slots / os.fsdecode(operation.slot)
    if operation.act is Act.ADD_FOLDER:
        slot.mkdir()
        handle = os.open(slot, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _inherit_group(tree, operation.path, handle)
        finally:
            os.close(handle)
        return
    content = blobs.read(operation.new.oid)
    if operation.new.mode == LINK:
        slot.symlink_to(os.fsdecode(content))
        return
    executable = operation.new.mode == PROGRAM
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # The creation mode goes through the person's umask, as for any new file of theirs.
    handle = os.open(slot, flags, 0o777 if executable else 0o666)
    with os.fdopen(handle, "wb", buffering=0) as stream:
        view = memoryview(content)
        while view:
            view = view[stream.write(view) :]
        if operation.act is Act.REPLACE:
            _like_replaced(tree, operation.path, stream.fileno(), executable)
        else:
            _inherit_group(tree, operation.path, stream.fileno())


def sync_slots(journal: Journal, operations: Sequence[Operation]) -> None:
    """Make everything staged durable: contents, then names.

    Apart from the writing, because a file system syncs many files that are all written in far less time than
    it needs when each is synced before the next is written.
    """
    for operation in operations:
        if operation.new is not None and operation.new.mode in (FILE, PROGRAM):
            slot = journal.slots / os.fsdecode(operation.slot)
            handle = os.open(slot, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    sync_folder(journal.slots)


def _like_replaced(tree: Tree, path: bytes, handle: int, executable: bool) -> None:
    with tree.folder(parent(path)) as folder:
        try:
            old = os.open(
                base(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
            )
        except OSError:
            return  # a link gives way to a file: nothing of it carries over
    try:
        found = os.fstat(old)
        if not stat.S_ISREG(found.st_mode):
            return
        _own(handle, found.st_uid, found.st_gid)
        _copy_attributes(old, handle)
        os.fchmod(handle, _bits(stat.S_IMODE(found.st_mode), executable))
    finally:
        os.close(old)


def _bits(old: int, executable: bool) -> int:
    if executable == bool(old & 0o100):
        return old
    # Who may read a program may run it, as git does it.
    return old | (old & 0o444) >> 2 if executable else old & ~0o111


def _own(handle: int, user: int, group: int) -> None:
    # Only root can give a file away; another's becomes ours, as with any editor that saves by rename.
    with contextlib.suppress(PermissionError):
        os.fchown(handle, -1, group)
    with contextlib.suppress(PermissionError):
        os.fchown(handle, user, -1)


def _copy_attributes(old: int, new: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        for name in os.listxattr(old):
            # Labels that only the system may set are refused; the rest still carries over.
            with contextlib.suppress(OSError):
                os.setxattr(new, name, os.getxattr(old, name))


def _inherit_group(tree: Tree, path: bytes, handle: int) -> None:
    """A directory may hand its group to what is made in it; a slot was made elsewhere."""
    for folder in [*reversed(parents(path)), b""]:
        try:
            with tree.folder(folder) as above:
                found = os.fstat(above)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if found.st_mode & stat.S_ISGID:
            with contextlib.suppress(PermissionError):
                os.fchown(handle, -1, found.st_gid)
                mode = os.fstat(handle).st_mode
                if stat.S_ISDIR(mode):
                    os.fchmod(handle, stat.S_IMODE(mode) | stat.S_ISGID)
        return
