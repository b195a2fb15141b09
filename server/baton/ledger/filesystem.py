"""Which file system holds a folder, and whether state may live there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import psutil

NETWORK = re.compile(
    r"nfs\d*|cifs|smb\d*|smbfs|9p|afs|afpfs|ceph|lustre|gpfs|beegfs|pvfs2|orangefs|ncpfs|webdav|davfs2?"
    r"|fuse\.(sshfs|s3fs|gcsfuse|rclone|glusterfs|ceph-fuse|davfs2?|afp.*|smb.*|goofys|curlftpfs)"
)
"""Types that share files between machines: their locks and shared memory cannot carry a database."""


def network_type(folder: Path) -> str | None:
    """The file system's type when it is a network one, else None. `folder` is resolved; it need not exist."""
    found = _type_on_linux(folder) if sys.platform == "linux" else _type_elsewhere(folder)
    return found if found is not None and NETWORK.fullmatch(found) else None


def type_in_mountinfo(mountinfo: str, folder: str) -> str | None:
    """The type that Linux's mount table gives for a path: of the deepest mount, the last one on it."""
    best, found = -1, None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        if len(fields) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        inside = folder == point or folder.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, found = len(point), kind
    return found


def _type_on_linux(folder: Path) -> str | None:
    try:
        table = Path("/proc/self/mountinfo").read_bytes().decode("latin-1")
    except OSError:
        return None
    # Both sides as latin-1, so that names which are not UTF-8 compare byte for byte.
    return type_in_mountinfo(table, os.fsencode(folder).decode("latin-1"))


def _type_elsewhere(folder: Path) -> str | None:
    mounts = [m for m in psutil.disk_partitions(all=True) if folder.is_relative_to(m.mountpoint)]
    return max(mounts, key=lambda mount: len(mount.mountpoint)).fstype if mounts else None
