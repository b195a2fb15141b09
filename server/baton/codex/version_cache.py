"""Remembers which version a program file has, so that finding Codex does not start every candidate again."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path


class VersionCache:
    """A small JSON file keyed by path; an entry counts only while the file's identity is the same.

    Identity is device, inode, size, and both times: package managers set the modification time of files to a
    constant. A cache that is missing, damaged or not writable costs time, never an error.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._entries = _load(file)

    def get(self, program: Path) -> str | None:
        """The version stored for this very file, or None."""
        entry = self._entries.get(str(program))
        if entry is None or entry[0] != identity(program):
            return None
        return entry[1]

    def put(self, program: Path, version: str) -> None:
        """Store the version of a file. Two writers at once: the last one wins, the file is always whole."""
        self._entries[str(program)] = (identity(program), version)
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(dir=self._file.parent, prefix=".versions-")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(self._entries, file)
                Path(name).replace(self._file)
            finally:
                Path(name).unlink(missing_ok=True)


def identity(program: Path) -> str:
    """What changes whenever another program is put in this one's place."""
    try:
        found = program.stat()
    except OSError:
        return "gone"
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def _load(file: Path | None) -> dict[str, tuple[str, str]]:
    if file is None:
        return {}
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {
        path: (entry[0], entry[1])
        for path, entry in data.items()
        if isinstance(entry, list) and len(entry) == 2 and all(isinstance(part, str) for part in entry)
    }
