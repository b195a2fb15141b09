"""Renames that never overwrite: exchange two names, or move to a name only while it is free.

Python has no call for either, so Linux's renameat2 is reached through the C library. Where the system or the
file system has no exchange, `exchange` raises `NoExchange` and callers move aside instead.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from functools import cache

_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_ABSENT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


class NoExchange(Exception):
    """Raised when names cannot be exchanged here; nothing was changed."""


def exchange(folder_a: int, name_a: bytes, folder_b: int, name_b: bytes) -> None:
    """Swap two existing entries of any type in one step. Folders are open directory handles.

    Raises `NoExchange` where it is not supported, else `OSError`.
    """
    try:
        _renameat2(folder_a, name_a, folder_b, name_b, _RENAME_EXCHANGE)
    except OSError as error:
        if error.errno in _ABSENT:
            raise NoExchange from None
        raise


def move_to_free(folder_a: int, name_a: bytes, folder_b: int, name_b: bytes) -> None:
    """Rename an entry to a name that must be free; `FileExistsError` when it is taken, whatever holds it."""
    try:
        _renameat2(folder_a, name_a, folder_b, name_b, _RENAME_NOREPLACE)
    except OSError as error:
        if error.errno not in _ABSENT:
            raise
        _move_by_link(folder_a, name_a, folder_b, name_b)


def _move_by_link(folder_a: int, name_a: bytes, folder_b: int, name_b: bytes) -> None:
    if stat.S_ISDIR(os.stat(name_a, dir_fd=folder_a, follow_symlinks=False).st_mode):
        # A directory has no second link. Making the target first keeps a file there from harm, and
        # rename replaces nothing but that empty directory.
        os.mkdir(name_b, 0o700, dir_fd=folder_b)
        os.rename(name_a, name_b, src_dir_fd=folder_a, dst_dir_fd=folder_b)
        return
    os.link(name_a, name_b, src_dir_fd=folder_a, dst_dir_fd=folder_b, follow_symlinks=False)
    os.unlink(name_a, dir_fd=folder_a)


def _renameat2(folder_a: int, name_a: bytes, folder_b: int, name_b: bytes, flags: int) -> None:
    function = _function()
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    ctypes.set_errno(0)
    if function(folder_a, name_a, folder_b, name_b, flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(name_a), None, os.fsdecode(name_b))


@cache
def _function() -> ctypes._NamedFuncPointer | None:
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    function.restype = ctypes.c_int
    return function
