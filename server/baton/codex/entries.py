"""The entries of a permission profile: who may read and write what, in the form that Codex reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from baton.contract.tree import show_path

READ, WRITE, DENY = "read", "write", "deny"

_GLOB_CHARACTERS = frozenset("*?[]")
"""Codex reads an entry with one of these as a glob, and globs only deny. There is no escape."""


MAX_BESIDE = 400
"""Denials that one denied folder may be split into; each is a mount, half a millisecond per command."""


class ProfileEntries:
    """Collects entries; a later one for the same path wins, and the more specific path decides."""

    def __init__(self) -> None:
        self.entries: dict[str, str] = {}
        self.roots: list[str] = []
        self.not_held: list[str] = []
        """What cannot be put into an entry, one line each."""
        self.left_open: list[str] = []
        """Denials that had to be given up, one line each."""

    def put(self, paths: Iterable[Path], access: str) -> None:
        for path in paths:
            if not _sendable(path):
                self._cannot(path, access, "is not UTF-8")
            elif _is_glob(path):
                self._cannot(path, access, "holds one of * ? [ ]")
            else:
                self.entries[str(path)] = access

    def write(self, paths: Iterable[Path]) -> None:
        for path in paths:
            if _is_glob(path) and _sendable(path):
                # A workspace root is taken literally where an entry would be read as a glob.
                self.roots.append(str(path))
            else:
                self.put((path,), WRITE)

    def deny(self, paths: Iterable[Path]) -> None:
        for path in paths:
            if not _is_glob(path) and _sendable(path):
                self.entries[str(path)] = DENY
            else:
                self.deny_globs((glob_for(path),))

    def deny_globs(self, globs: Iterable[str]) -> None:
        for glob in globs:
            # A glob denies files alone; what lies below a directory that it matches needs a glob of its own.
            self.entries.update({glob: DENY, f"{glob.removesuffix('/**')}/**": DENY})

    def settle(self) -> None:
        """Give denials a form that the sandbox can set up; to be called once, when all entries are there.

        Below a denied folder only what may be written is ever visible. Where something there is to be read,
        the folder's denial is replaced by denials of what lies beside the way to it: what is made there later
        can then be seen. A part to be read inside a part to be written needs nothing of the kind.
        """
        for denied in sorted(path for path, access in self.entries.items() if access == DENY):
            if not _is_plain(denied):
                continue
            opened = [Path(path) for path in self.entries if self._opens(path, denied)]
            if not opened:
                continue
            del self.entries[denied]
            visible = [Path(path) for path, access in self.entries.items() if access != DENY]
            beside = {str(path): DENY for path in islice(_beside(Path(denied), visible), MAX_BESIDE + 1)}
            if len(beside) > MAX_BESIDE:
                self.left_open.append(f"{denied} can be read: too much lies beside {opened[0]} to deny each")
            else:
                self.entries.update(beside)

    def _opens(self, path: str, denied: str) -> bool:
        """Whether an entry is to be read although it lies directly below the denied folder."""
        if self.entries[path] != READ or not path.startswith(f"{denied.rstrip('/')}/"):
            return False
        return next((above for above in _upwards(path)[1:] if above in self.entries), None) == denied

    def filesystem(self) -> dict[str, object]:
        """The table as Codex reads it.

        A denial below a denied folder is left out: it says nothing new, and the sandbox could not be set up.
        """
        literal: dict[str, object] = {":workspace_roots": {".": WRITE}} if self.roots else {}
        kept = {path: access for path, access in self.entries.items() if not self._repeats(path, access)}
        return {**kept, **literal}

    def _repeats(self, path: str, access: str) -> bool:
        if access != DENY or not path.startswith("/"):
            return False
        fixed = _fixed_part(path)
        above = _upwards(fixed)[1:] if fixed == path else _upwards(fixed)
        return next((self.entries[parent] for parent in above if parent in self.entries), None) == DENY

    def writable_roots(self) -> tuple[str, ...]:
        written = (path for path, access in self.entries.items() if access == WRITE)
        return tuple(sorted({*written, *self.roots}))

    def _cannot(self, path: Path, access: str, why: str) -> None:
        held = "writable" if access == WRITE else "kept read-only"
        self.not_held.append(f"{show_path(os.fsencode(path))} is not {held}: its name {why}")


def _beside(folder: Path, visible: list[Path]) -> Iterator[Path]:
    """Everything in `folder` that is not visible and leads to nothing visible."""
    try:
        children = sorted(folder.iterdir())
    except OSError:
        return
    for child in children:
        if child in visible:
            continue
        if any(path.is_relative_to(child) for path in visible):
            yield from _beside(child, visible)
        elif not child.is_symlink():
            yield child


def _upwards(path: str) -> list[str]:
    names = path.rstrip("/").split("/")
    return [path, *("/".join(names[:end]) or "/" for end in range(len(names) - 1, 0, -1))]


def _is_plain(path: str) -> bool:
    return path.startswith("/") and _GLOB_CHARACTERS.isdisjoint(path)


def _fixed_part(path: str) -> str:
    """The leading names without glob characters."""
    names: list[str] = []
    for name in path.split("/"):
        if not _GLOB_CHARACTERS.isdisjoint(name):
            break
        names.append(name)
    return "/".join(names) or "/"


def network_settings(loopback: bool, hosts: tuple[str, ...]) -> tuple[dict[str, object], dict[str, bool]]:
    """The network table of a profile, and the features without which it would mean something else."""
    if not loopback and not hosts:
        return {"enabled": False}, {}
    network: dict[str, object] = {"enabled": True}
    if hosts:
        network["domains"] = dict.fromkeys(hosts, "allow")
    # Without this feature `enabled` would mean the whole network.
    return network, {"network_proxy": True}


def glob_for(path: Path) -> str:
    """A glob for one path; wider where a character cannot be written down, which is the safe side."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return "".join(f"[{char}]" if char in "*?[]" else "?" if char in "\\\ufffd" else char for char in text)


def _is_glob(path: Path) -> bool:
    return not _GLOB_CHARACTERS.isdisjoint(str(path))


def _sendable(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True
