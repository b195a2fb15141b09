"""Turns a scope plan into a Codex permission profile: what a worker's sandbox lets through."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from baton.codex.session_profile import UNBOUNDED, SessionProfile
from baton.contract.scope import ScopePlan
from baton.contract.tree import show_path

READ, WRITE, DENY = "read", "write", "deny"

_GLOB_CHARACTERS = frozenset("*?[]")
"""Codex reads an entry with one of these as a glob, and globs only deny. There is no escape."""

_WORKSPACE_ROOTS = ":workspace_roots"


@dataclass(frozen=True)
class PermissionProfile:
    """A profile under a name that nobody can guess, so that no configuration can have one like it."""

    name: str
    filesystem: Mapping[str, object]
    network: Mapping[str, object]
    writable_roots: tuple[str, ...]
    """What `thread/start` must report as writable. Codex never lists the working directory itself there."""
    workspace_roots: tuple[str, ...] | None = None
    """To be given as `runtimeWorkspaceRoots` of the thread, on every start and resume; None: leave it out."""
    not_held: tuple[str, ...] = ()
    """What the plan asks and Codex cannot hold, one line each: these parts are only detected."""
    features: Mapping[str, bool] = field(default_factory=dict)

    @property
    def config(self) -> dict[str, object]:
        """The profile as per-thread config; select it by `permissions` with `name`."""
        profile = {"filesystem": dict(self.filesystem), "network": dict(self.network)}
        config: dict[str, object] = {"permissions": {self.name: profile}}
        if self.features:
            config["features"] = dict(self.features)
        return config

    def widened(self, reported: Iterable[str]) -> tuple[str, ...]:
        """Roots that Codex reports as writable although the profile does not give them: must be empty."""
        return tuple(sorted(set(reported) - set(self.writable_roots)))


@dataclass(frozen=True)
class WorkerPlace:
    """Where one worker works, as far as its profile must know. Every path is absolute and free of links."""

    worktree: Path
    """The whole worktree, readable."""
    cwd: Path
    """The workspace inside the worktree."""
    workspace: Path
    """The person's own workspace, of which `cwd` is the copy."""
    scratch: tuple[Path, ...]
    """Folders of its own, writable."""
    binary: Path
    """The Codex program: it starts itself again inside the sandbox, so it must be readable there."""


def build_profile(
    plan: ScopePlan,
    place: WorkerPlace,
    *,
    denied: Iterable[Path] = (),
    readable: Iterable[Path] = (),
    session: SessionProfile | None = None,
    loopback: bool = False,
    network_hosts: Iterable[str] = (),
) -> PermissionProfile:
    """The profile for one worker.

    `denied` are folders and files that it may not read, such as the state folder and the person's Codex home:
    below them only its worktree, its scratch, `readable` and the Codex program stay visible. `session` bounds
    what it may read and reach: what the session may not read is denied in the workspace and in its copy.
    `loopback` gives a private network with loopback and no way out; `network_hosts` opens these hosts besides.

    A part of the plan that Codex cannot hold is listed in `not_held`, never left out in silence.
    """
    session = session or UNBOUNDED
    builder = _Builder()
    builder.entries[":root" if session.reads_everything else ":minimal"] = READ
    builder.deny((*denied, *_with_copies(session.denied_paths, place)))
    if not session.reads_everything:
        builder.put(session.readable_paths, READ)
    builder.put((*readable, Path(os.path.realpath(place.binary)).parent, place.worktree), READ)
    builder.put(place.scratch, WRITE)
    builder.write(plan.writable_roots)
    builder.put(plan.readonly, READ)
    builder.deny(plan.hidden_paths)
    builder.deny_globs((*plan.hidden_globs, *_with_copied_globs(session.denied_globs, place)))
    network, features = _network(loopback, tuple(network_hosts) if session.network else ())
    return PermissionProfile(
        name=f"baton-{secrets.token_hex(16)}",
        filesystem=builder.filesystem(),
        network=network,
        writable_roots=builder.writable_roots(),
        workspace_roots=tuple(builder.roots) or None,
        not_held=tuple(builder.not_held),
        features=features,
    )


class _Builder:
    """Collects entries; a later one for the same path wins."""

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
                self.deny_globs((_glob_for(path),))

    def deny_globs(self, globs: Iterable[str]) -> None:
        for glob in globs:
            # A glob denies files alone; what lies below a directory that it matches needs a glob of its own.
            self.entries.update({glob: DENY, f"{glob.removesuffix('/**')}/**": DENY})

    def filesystem(self) -> dict[str, object]:
        literal: dict[str, object] = {_WORKSPACE_ROOTS: {".": WRITE}} if self.roots else {}
        return {**self.entries, **literal}

    def writable_roots(self) -> tuple[str, ...]:
        written = (path for path, access in self.entries.items() if access == WRITE)
        return tuple(sorted({*written, *self.roots}))

    def _cannot(self, path: Path, access: str, why: str) -> None:
        held = "writable" if access == WRITE else "kept read-only"
        self.not_held.append(f"{show_path(os.fsencode(path))} is not {held}: its name {why}")


def _with_copies(paths: Iterable[Path], place: WorkerPlace) -> list[Path]:
    """The paths, and for those in the workspace also their copies in the worktree."""
    listed = list(paths)
    inside = (path for path in listed if path.is_relative_to(place.workspace))
    return [*listed, *(place.cwd / path.relative_to(place.workspace) for path in inside)]


def _with_copied_globs(globs: Iterable[str], place: WorkerPlace) -> list[str]:
    listed = list(globs)
    prefix = f"{place.workspace}/"
    inside = (glob.removeprefix(prefix) for glob in listed if glob.startswith(prefix))
    return [*listed, *(f"{_glob_for(place.cwd)}/{rest}" for rest in inside)]


def _network(loopback: bool, hosts: tuple[str, ...]) -> tuple[dict[str, object], dict[str, bool]]:
    if not loopback and not hosts:
        return {"enabled": False}, {}
    network: dict[str, object] = {"enabled": True}
    if hosts:
        network["domains"] = dict.fromkeys(hosts, "allow")
    # Without this feature `enabled` would mean the whole network.
    return network, {"network_proxy": True}


def _glob_for(path: Path) -> str:
    """A glob for one path; wider than it where a character cannot be written down, the safe side of a denial."""
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
