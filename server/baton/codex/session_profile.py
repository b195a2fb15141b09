"""What the calling session may read, write and reach: the bound of everything done on its behalf."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit

PROTECTED = frozenset((".git", ".agents", ".codex", ".aws"))
"""Names that stay read-only directly below a writable root, unless an entry of their own says otherwise."""


@dataclass(frozen=True)
class Entry:
    """One line of a profile: everything at and below a path."""

    path: Path
    access: str


@dataclass(frozen=True)
class SessionProfile:
    """The bounds of a session. Paths asked about must be absolute and free of links and `..`.

    What could not be understood grants nothing: it is listed in `unknown`, and an unknown denial makes the
    whole session read-only, because nobody can say what it protects.
    """

    cwd: Path | None
    unlimited: bool
    """No sandbox at all: full access, or a session in a terminal, bounded by the person's own rights."""
    network: bool
    """Whether commands of the session reach the network, at least in part."""
    entries: tuple[Entry, ...] = ()
    denied_globs: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    frozen: bool = False
    """True when an unknown denial takes every write away."""

    @property
    def reads_everything(self) -> bool:
        """Whether everything may be read but for what is denied."""
        return self.unlimited or any(
            entry.path == Path("/") and entry.access in ("read", "write") for entry in self.entries
        )

    @property
    def denied_paths(self) -> tuple[Path, ...]:
        return tuple(entry.path for entry in self.entries if entry.access == "deny")

    @property
    def readable_paths(self) -> tuple[Path, ...]:
        """Paths that may be read by entries of their own, for a session that does not read everything."""
        return tuple(entry.path for entry in self.entries if entry.access != "deny")

    @property
    def read_only(self) -> bool:
        """Whether the session may not change its own folder."""
        return self.cwd is None or not self.may_write(self.cwd)

    def may_read(self, path: Path) -> bool:
        """Whether commands of the session can read `path`."""
        return self.unlimited or self._access(path) in ("read", "write")

    def may_write(self, path: Path) -> bool:
        """Whether commands of the session can write `path`, or make it."""
        if self.unlimited:
            return True
        if self.frozen or self._access(path) != "write":
            return False
        root = self._deciding(path)
        below = path.relative_to(root.path).parts if root is not None else ()
        return not (below and below[0] in PROTECTED)

    def _access(self, path: Path) -> str:
        if any(_may_match(glob, path) for glob in self.denied_globs):
            return "deny"
        deciding = self._deciding(path)
        return deciding.access if deciding is not None else "deny"

    def _deciding(self, path: Path) -> Entry | None:
        """The most specific entry; of two for the same path the stricter one."""
        strictness = {"write": 0, "read": 1, "deny": 2}
        covering = [entry for entry in self.entries if path.is_relative_to(entry.path)]
        return max(
            covering, key=lambda entry: (len(entry.path.parts), strictness[entry.access]), default=None
        )


UNBOUNDED = SessionProfile(cwd=None, unlimited=True, network=True)
"""A session in a terminal: nobody stated a profile."""


def read_session_profile(state: Mapping[str, object] | None, env: Mapping[str, str]) -> SessionProfile:
    """Read the sandbox state that Codex sends with a call; None is a session in a terminal.

    `env` is where the session's `TMPDIR` is looked up. Never raises: what is not understood bounds the
    session more tightly and is listed in `unknown`.
    """
    if state is None:
        return UNBOUNDED
    cwd = _cwd(state.get("sandboxCwd"))
    profile = state.get("permissionProfile")
    if not isinstance(profile, Mapping):
        return _closed(cwd, "the session's permission profile is missing")
    kind = profile.get("type")
    network = profile.get("network") == "enabled"
    if kind == "disabled":
        return SessionProfile(cwd=cwd, unlimited=True, network=True)
    if kind == "external":
        return SessionProfile(cwd=cwd, unlimited=True, network=network)
    files = profile.get("file_system")
    if kind != "managed" or not isinstance(files, Mapping):
        return _closed(cwd, f"unknown kind of permission profile: {kind!r}")
    if files.get("type") == "unrestricted":
        return SessionProfile(cwd=cwd, unlimited=True, network=network)
    listed = files.get("entries")
    if files.get("type") != "restricted" or not isinstance(listed, Sequence) or isinstance(listed, str):
        return _closed(cwd, f"unknown kind of file access: {files.get('type')!r}")
    reader = _Reader(cwd, env)
    for item in listed:
        reader.take(item)
    return SessionProfile(
        cwd=cwd,
        unlimited=False,
        network=network,
        entries=tuple(reader.entries),
        denied_globs=tuple(reader.globs),
        unknown=tuple(reader.unknown),
        frozen=reader.frozen,
    )


class _Reader:
    """Collects entries one by one."""

    def __init__(self, cwd: Path | None, env: Mapping[str, str]) -> None:
        self.cwd = cwd
        self.env = env
        self.entries: list[Entry] = []
        self.globs: list[str] = []
        self.unknown: list[str] = []
        self.frozen = False

    def take(self, item: object) -> None:
        fields = item if isinstance(item, Mapping) else {}
        place, access = fields.get("path"), fields.get("access")
        if access == "none":
            access = "deny"
        if not isinstance(place, Mapping) or access not in ("read", "write", "deny"):
            self._give_up(item, access)
            return
        if place.get("type") == "glob_pattern" and access == "deny" and isinstance(place.get("pattern"), str):
            self.globs.append(str(place["pattern"]))
            return
        path = self._path(place)
        if path is None:
            self._give_up(item, access)
        else:
            self.entries.extend(
                Entry(each, str(access)) for each in dict.fromkeys((path, Path(os.path.realpath(path))))
            )

    def _give_up(self, item: object, access: object) -> None:
        text = repr(item)
        self.unknown.append(f"entry not understood: {text if len(text) <= 120 else text[:117] + '...'}")
        if access not in ("read", "write"):
            self.frozen = True

    def _path(self, place: Mapping[str, object]) -> Path | None:
        if place.get("type") == "path" and isinstance(place.get("path"), str):
            path = Path(str(place["path"]))
            return path if path.is_absolute() else None
        value = place.get("value")
        if place.get("type") != "special" or not isinstance(value, Mapping):
            return None
        subpath = value.get("subpath")
        match value.get("kind"):
            case "root":
                return Path("/")
            case "slash_tmp":
                return Path("/tmp")
            case "tmpdir":
                # Without the variable Codex itself has no such entry.
                return Path(self.env.get("TMPDIR") or "/tmp")
            case "project_roots" if self.cwd is not None:
                return self.cwd / subpath if isinstance(subpath, str) else self.cwd
            case "minimal":
                # What programs need to start; nothing of a person's lies there.
                return Path("/usr")
        return None


def _closed(cwd: Path | None, why: str) -> SessionProfile:
    return SessionProfile(cwd=cwd, unlimited=False, network=False, unknown=(why,), frozen=True)


def _cwd(value: object) -> Path | None:
    if not isinstance(value, str):
        return None
    text = unquote(urlsplit(value).path, errors="surrogateescape") if value.startswith("file:") else value
    return Path(text) if text.startswith("/") else None


def _may_match(glob: str, path: Path) -> bool:
    """Whether a glob may match a path: `*` stands for slashes too, `{…}` for anything; never too little."""
    loose = re.sub(r"\{[^{}]*\}|\\.", "*", glob).replace("/**/", "/*")
    return fnmatchcase(str(path), loose)
