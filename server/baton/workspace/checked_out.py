"""Makes what a worker left of a file as a checkout would have left it, so that it can pass for one."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

_OF_THE_SYSTEM = frozenset(("security.selinux", "security.SMACK64", "security.ima", "security.evm"))
"""Attributes that every file gets where the system has them."""


def as_checked_out(root: Path, path: bytes, modes: Mapping[bytes, int]) -> bool:
    """Give a captured path below `root` the mode and time of a checkout; False when it has more to it.

    `modes` are git's, of the paths that differ from what was there before. A folder loses what is empty.
    """
    full = os.fsencode(root) + b"/" + path
    try:
        found = os.lstat(full)
        if stat.S_ISDIR(found.st_mode):
            _prune(full)
            return True
        if any(name not in _OF_THE_SYSTEM for name in _attributes(full)):
            return False
        if stat.S_ISREG(found.st_mode):
            executable = modes.get(path, found.st_mode) & 0o100
            os.chmod(full, (0o777 if executable else 0o666) & ~_umask())
            os.utime(full)
        return True
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _prune(folder: bytes) -> None:
    """Remove folders without files, made for a worker who did not need them."""
    for at, _, _ in os.walk(folder, topdown=False, onerror=_raise):
        try:
            os.rmdir(at)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def _raise(error: OSError) -> None:
    raise error


def _attributes(path: bytes) -> list[str]:
    try:
        return os.listxattr(path, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise


@lru_cache(maxsize=1)
def _umask() -> int:
    """Ours; to ask the system for it is to change it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    raise OSError("the system does not tell the umask")
