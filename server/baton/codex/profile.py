"""Turns a scope plan into a Codex permission profile: what a worker's sandbox lets through."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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


def build_profile(
    plan: ScopePlan,
    *,
    cwd: Path,
    worktree: Path,
    scratch: Sequence[Path],
    denied: Iterable[Path] = (),
    denied_globs: Iterable[str] = (),
    readable: Iterable[Path] = (),
    loopback: bool = False,
    network_hosts: Iterable[str] = (),
    read_all: bool = True,
) -> PermissionProfile:
    """The profile for one worker.

    `denied` are folders and files that it may not read, such as the state folder and the person's Codex home;
    `worktree`, `scratch` and `readable` stay visible below a denied folder, nothing else does. `denied_globs`
    are absolute. `loopback` gives a private network with loopback and no way out; `network_hosts` opens these
    hosts besides. `read_all=False` lets it read only its worktree, `readable` and what programs need to run.

    A part of the plan that Codex cannot hold is listed in `not_held`, never left out in silence.
    """
    entries: dict[str, str] = {":root" if read_all else ":minimal": READ}
    not_held: list[str] = []
    roots: list[str] = []
    for path in denied:
        entries.update(_deny(path))
    for path in (*readable, worktree):
        _put(entries, path, READ, not_held)
    for path in scratch:
        _put(entries, path, WRITE, not_held)
    in_name_only = [path for path in plan.writable_roots if _is_glob(path) and _sendable(path)]
    for path in plan.writable_roots:
        if not _is_glob(path):
            _put(entries, path, WRITE, not_held)
    if in_name_only:
        # A workspace root is taken literally where an entry would be read as a glob.
        roots = [str(path) for path in in_name_only]
    for path in plan.readonly:
        _put(entries, path, READ, not_held)
    for path in plan.hidden_paths:
        entries.update(_deny(path))
    entries.update(dict.fromkeys((*plan.hidden_globs, *denied_globs), DENY))
    filesystem: dict[str, object] = dict(entries)
    if roots:
        filesystem[_WORKSPACE_ROOTS] = {".": WRITE}
    written = [path for path, access in entries.items() if access == WRITE]
    network, features = _network(loopback, tuple(network_hosts))
    return PermissionProfile(
        name=f"baton-{secrets.token_hex(16)}",
        filesystem=filesystem,
        network=network,
        writable_roots=tuple(sorted({*written, *roots})),
        workspace_roots=tuple(roots) or None,
        not_held=tuple(not_held),
        features=features,
    )


def _network(loopback: bool, hosts: tuple[str, ...]) -> tuple[dict[str, object], dict[str, bool]]:
    if not loopback and not hosts:
        return {"enabled": False}, {}
    network: dict[str, object] = {"enabled": True}
    if hosts:
        network["domains"] = dict.fromkeys(hosts, "allow")
    # Without this feature `enabled` would mean the whole network.
    return network, {"network_proxy": True}


def _put(entries: dict[str, str], path: Path, access: str, not_held: list[str]) -> None:
    if not _sendable(path):
        verb = "be written" if access == WRITE else "be kept read-only"
        not_held.append(f"{_shown(path)} cannot {verb}: its name is not UTF-8")
    elif _is_glob(path):
        not_held.append(f"{_shown(path)} is not kept read-only: its name holds one of * ? [ ]")
    else:
        entries[str(path)] = access


def _deny(path: Path) -> dict[str, str]:
    """Entries that deny reading a path and everything below it."""
    if not _is_glob(path) and _sendable(path):
        return {str(path): DENY}
    # Wider than the path where a character cannot be written down, which is the safe side of a denial.
    text = os.fsencode(path).decode("utf-8", "replace")
    glob = "".join(f"[{char}]" if char in "*?[]" else "?" if char in "\\�" else char for char in text)
    return {glob: DENY, f"{glob}/**": DENY}


def _is_glob(path: Path) -> bool:
    return not _GLOB_CHARACTERS.isdisjoint(str(path))


def _sendable(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(path: Path) -> str:
    return show_path(os.fsencode(path))
