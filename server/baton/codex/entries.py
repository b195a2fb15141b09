"""The entries of a permission profile: who may read and write what, in the form that Codex reads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from baton.contract.tree import show_path

READ, WRITE, DENY = "read", "write", "deny"

_GLOB_CHARACTERS = frozenset("*?[]")
"""Codex reads an entry with one of these as a glob, and globs only deny. There is no escape."""


class ProfileEntries:
    """Collects entries; a later one for the same path wins, and the more specific path decides."""

    def __init__(self) -> None:
        self.entries: dict[str, str] = {}
        self.roots: list[str] = []
        self.not_held: list[str] = []

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

    def filesystem(self) -> dict[str, object]:
        literal: dict[str, object] = {":workspace_roots": {".": WRITE}} if self.roots else {}
        return {**self.entries, **literal}

    def writable_roots(self) -> tuple[str, ...]:
        written = (path for path, access in self.entries.items() if access == WRITE)
        return tuple(sorted({*written, *self.roots}))

    def _cannot(self, path: Path, access: str, why: str) -> None:
        held = "writable" if access == WRITE else "kept read-only"
        self.not_held.append(f"{show_path(os.fsencode(path))} is not {held}: its name {why}")


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
