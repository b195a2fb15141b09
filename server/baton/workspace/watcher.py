"""What has been written in a worktree, as the kernel tells it: so that not every file has to be looked at.

Linux reports each change of a watched folder's entries through inotify, whoever makes it. What it does not
report is told apart by rule, and then the answer is that nobody can tell:

* A file that got a second name is written to under either of them. So whatever was made here must still be
  here at the end, with one name; and nothing can be linked in from elsewhere, because a sandbox mounts each
  writable folder by itself.
* A mounted overlay writes past the reports. It needs a new folder, so new folders are such a case too, but
  for those that Codex's sandbox itself makes and hides. It makes none where they are made for it in advance.
  Where it does, and two sandboxes may have met, one can take such a folder away beneath the other: then files
  tell by the time of their last change, which nobody can set, that none of them was written to by a name in
  there.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import stat
import struct
import subprocess
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from baton.workspace.create import MOUNT_POINTS
from baton.workspace.worktree import SCRATCH

MOST_FOLDERS = 4096
"""Folders that are watched in one worktree; one with more is looked at in full each time."""

SHARE_OF_WATCHES = 16
"""One worktree takes at most this part of the watches that the system grants a user."""

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED = 0x2000, 0x4000, 0x8000
_ISDIR, _ONLYDIR, _DONT_FOLLOW = 0x40000000, 0x01000000, 0x02000000
_WRITES = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
)

_SLOT = b"/"
"""Stands for the folder above the root; no folder below the root is named so."""

_SCRATCH = SCRATCH.encode()

_HIDDEN = frozenset(name.encode() for name in MOUNT_POINTS)


@dataclass(frozen=True)
class _Event:
    folder: bytes
    """Relative to the root, with a slash at its end; empty for the root itself."""
    name: bytes
    mask: int
    cookie: int

    @property
    def path(self) -> bytes:
        return self.folder + self.name


class Watcher:
    """Reports which paths of one worktree were written to. Not for use by several threads at once."""

    def __init__(self, handle: int, root: Path) -> None:
        self._handle = handle
        self._root = root
        self._top = os.fsencode(root) + b"/"
        self._folders: dict[int, bytes] = {}
        self._since: list[_Event] = []
        self._time = 0
        """Of the file system, in ns, when all reports so far were taken in."""
        self._alive = True

    @classmethod
    def of(cls, root: Path, folders: Collection[bytes]) -> Watcher | None:
        """A watcher of everything from here on in `root`, its `folders` (all that it has) and its parent.

        None where the system has no such reports, or not enough of them.
        """
        library = _library()
        if library is None or len(folders) + 2 > most_folders():
            return None
        handle = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if handle < 0:
            return None
        watcher = cls(handle, root)
        wanted = (_SLOT, b"", *(folder + b"/" for folder in folders))
        if not all(watcher._watch(folder) for folder in wanted) or not watcher._drain():
            watcher.close()
            return None
        watcher._since.clear()
        return watcher

    def close(self) -> None:
        """Hear nothing any more. May be called again."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        self._alive = False

    def told(
        self, sandboxed: Collection[bytes], taken: Collection[bytes] = (), *, one_at_a_time: bool = False
    ) -> frozenset[bytes] | None:
        """The paths that may have changed since it was last asked: all of them, and perhaps some more.

        None when only a look at everything can tell, now and from here on. `sandboxed` are the folders
        (relative, with a slash at the end, empty for the root) in which a sandbox makes and hides its mount
        points; so it does in the parent of the root. `taken` are folders without anything in them that the
        caller has removed since, after all else. `one_at_a_time`: no two sandboxes were there together, so
        that none can have taken a mount point away beneath another.
        """
        before = self._time
        if not self._drain():
            return None
        account = _Account(self._top, {*sandboxed, _SLOT})
        others = _without(self._since, taken)
        touched = None if others is None else account.of(others)
        self._since.clear()
        is_doubtful = account.hid_something and not one_at_a_time
        if touched is not None and is_doubtful and self._is_more_changed(touched, before):
            touched = None
        self._alive = touched is not None
        return touched

    def settle(self) -> frozenset[bytes] | None:
        """Forget what was written so far. Returns the paths; None when the watcher is of no more use.

        For what Baton itself has done to the worktree while nobody else had it: new folders are watched too.
        """
        if not self._drain():
            return None
        touched = set()
        for event in self._since:
            if event.folder == _SLOT or not event.name:
                continue
            touched.add(event.path)
            is_new = event.mask & _ISDIR and event.mask & (_CREATE | _MOVED_TO)
            if is_new and not self._watch_below(event.path):
                self.close()
                return None
        self._since.clear()
        return frozenset(touched)

    def _is_more_changed(self, touched: Collection[bytes], since: int) -> bool:
        """Whether the time of any other file says so, or cannot be told.

        A sandbox takes longer to start than the time takes to move on, but for systems that tell seconds.
        """
        since -= since % 1_000_000_000 == 0
        changed = _changed_files(self._top, since)
        return changed is None or any(path not in touched for path in changed)

    # -- watching ---------------------------------------------------------------------------------

    def _watch(self, folder: bytes) -> bool:
        library = _library()
        path = os.fsencode(self._root.parent) if folder == _SLOT else self._top + folder
        if library is None or len(self._folders) >= most_folders():
            return False
        watch = library.inotify_add_watch(self._handle, path, _WRITES | _ONLYDIR | _DONT_FOLLOW)
        if watch < 0:
            return False
        self._folders[watch] = folder
        return True

    def _watch_below(self, folder: bytes) -> bool:
        found = os.walk(self._top + folder)
        return all(self._watch(at[len(self._top) :] + b"/") for at, _, _ in found)

    # -- reading ----------------------------------------------------------------------------------

    def _drain(self) -> bool:
        """Take in all reports up to now; False when some are or may be missing.

        A folder that is made and removed for it must come last: then the reports do come, all of them.
        """
        if not self._alive:
            return False
        name = f".{secrets.token_hex(8)}"
        try:
            (self._root.parent / name).mkdir()
            (self._root.parent / name).rmdir()
            self._time = self._root.parent.stat().st_ctime_ns
        except OSError:
            self._alive = False
            return False
        own = 0
        while self._alive:
            try:
                data = os.read(self._handle, 1 << 16)
            except BlockingIOError:
                break
            own += self._take_in(data, name.encode())
        self._alive = self._alive and own == 2  # made, removed
        return self._alive

    def _take_in(self, data: bytes, own_name: bytes) -> int:
        own = at = 0
        while at < len(data):
            watch, mask, cookie, length = struct.unpack_from("iIII", data, at)
            name = data[at + 16 : at + 16 + length].rstrip(b"\0")
            at += 16 + length
            folder = self._folders.get(watch)
            if mask & (_OVERFLOW | _UNMOUNT | _MOVE_SELF):
                self._alive = False
            elif mask & _IGNORED:
                self._folders.pop(watch, None)
            elif folder == _SLOT and name == own_name:
                own += 1
            elif folder is not None:
                self._since.append(_Event(folder, name, mask, cookie))
        return own


@dataclass
class _Account:
    """Reads what was reported in its order."""

    top: bytes
    sandboxed: Collection[bytes]
    touched: set[bytes] = field(default_factory=set)
    made: set[bytes] = field(default_factory=set)
    """Names that something came under."""
    moving: dict[int, bytes] = field(default_factory=dict)
    hidden: set[bytes] = field(default_factory=set)
    """Mount points that came and must have gone."""
    hid_something: bool = False
    """Whether some of them were in the worktree itself."""

    def of(self, events: Iterable[_Event]) -> frozenset[bytes] | None:
        """The paths touched; None when they are not all that may have been written to."""
        if not all(self._is_plain(event) for event in events) or self.moving:
            return None
        if any(map(os.path.lexists, self.hidden)) or any(map(self._has_two_names, self.touched)):
            return None
        return frozenset(self.touched)

    def _is_plain(self, event: _Event) -> bool:
        if event.mask & _ISDIR:
            above = (
                os.path.dirname(self.top[:-1]) + b"/" if event.folder == _SLOT else self.top + event.folder
            )
            self.hidden.add(above + event.name)
            if event.folder == _SLOT and event.name == _SCRATCH:
                return bool(event.mask & _DELETE)  # with the end of the use
            hides = event.name in _HIDDEN and event.folder in self.sandboxed
            self.hid_something |= event.folder != _SLOT
            return hides and bool(event.mask & (_CREATE | _DELETE))
        if event.folder == _SLOT or not event.name or event.name.lower() == b".git":
            return False
        path = event.path
        self.touched.add(path)
        if event.mask & _MOVED_FROM:
            self.moving[event.cookie] = path
        if event.mask & _MOVED_TO and self.moving.pop(event.cookie, None) is None:
            return False  # from elsewhere
        if event.mask & (_CREATE | _MOVED_TO):
            if path in self.made:
                return False  # what was there before is gone, or has another name
            self.made.add(path)
        return not (event.mask & _DELETE and path in self.made)

    def _has_two_names(self, path: bytes) -> bool:
        """Or may have: the path may be too long to be looked at."""
        try:
            found = os.lstat(self.top + path)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1


def _without(events: Sequence[_Event], removed: Collection[bytes]) -> list[_Event] | None:
    """The events, but for those of the last removal of each of these folders; None when one was not reported.

    Of the folder itself only its end is left out: what had been done in it stays among them.
    """
    missing = set(removed)
    others = []
    for event in reversed(events):
        is_end = event.mask & _DELETE_SELF and event.folder[:-1] in removed
        if event.mask & _ISDIR and event.mask & _DELETE and event.path in missing:
            missing.discard(event.path)
        elif not is_end:
            others.append(event)
    return None if missing else others[::-1]


def _changed_files(top: bytes, since: int) -> list[bytes] | None:
    """Files below a folder whose last change of any kind came after `since`, in ns; None: nobody can tell.

    Another program looks: it holds up no thread of this one.
    """
    find = shutil.which("find")
    if find is None:
        return None
    seconds, rest = divmod(since, 1_000_000_000)
    newer = ["!", "-type", "d", "-newerct", f"@{seconds}.{rest:09}", "-print0"]
    try:
        done = subprocess.run([find, top, *newer], capture_output=True, stdin=subprocess.DEVNULL, check=False)
    except OSError:
        return None
    if done.returncode != 0:  # one that knows no such times, or a folder that cannot be read
        return None
    return [path.removeprefix(top) for path in done.stdout.split(b"\0") if path]


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(None, use_errno=True)
        library.inotify_init1.argtypes = [ctypes.c_int]
        library.inotify_add_watch.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
    except (OSError, AttributeError):
        return None
    return library


@lru_cache(maxsize=1)
def most_folders() -> int:
    """How many folders may be watched in one worktree; 0 where the system reports nothing."""
    try:
        granted = int(Path("/proc/sys/fs/inotify/max_user_watches").read_text())
    except (OSError, ValueError):
        return 0
    return min(MOST_FOLDERS, granted // SHARE_OF_WATCHES)
