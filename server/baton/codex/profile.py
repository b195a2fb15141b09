"""Turns a scope plan into a Codex permission profile: what a worker's sandbox lets through."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from baton.codex.entries import READ, WRITE, ProfileEntries, glob_for, network_settings
from baton.codex.session_profile import UNBOUNDED, SessionProfile
from baton.contract.scope import ScopePlan


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
    visible: tuple[Path, ...] | None = None
    """The only parts of the worktree that are readable, beside the system. None: no limit."""
    shells: tuple[Path, ...] = ()
    """Folders that hold one readable folder each and nothing of anybody else, such as the worktree's. They
    are made writable, so that what they hold is seen below a denied folder that hides all else; without them
    what lies beside it now is denied singly. Scratch folders may lie in them."""


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
    `loopback` gives a private network with loopback and no way out; `network_hosts` opens these hosts.

    A part of the plan that Codex cannot hold is listed in `not_held`, never left out in silence.
    """
    session = session or UNBOUNDED
    entries = ProfileEntries()
    narrow = place.visible is not None
    entries.entries[":root" if session.reads_everything and not narrow else ":minimal"] = READ
    if narrow:
        pass  # nothing is visible but what is put in below
    elif session.reads_everything:
        entries.deny(denied)
    else:
        # Nothing is visible but what is listed. A denial above a listed path would hide that too.
        entries.deny(path for path in denied if any(map(path.is_relative_to, session.readable_paths)))
        entries.put(session.readable_paths, READ)
    worktree = (place.worktree,) if place.visible is None else place.visible
    entries.put((*readable, Path(os.path.realpath(place.binary)).parent, *worktree), READ)
    entries.put(own_roots(place.scratch, place.shells), WRITE)
    entries.write(plan.writable_roots)
    entries.put(plan.readonly, READ)
    entries.deny((*plan.hidden_paths, *_with_copies(session.denied_paths, place)))
    entries.deny_globs((*plan.hidden_globs, *_with_copied_globs(session.denied_globs, place)))
    entries.settle()
    network, features = network_settings(loopback, tuple(network_hosts) if session.network else ())
    return PermissionProfile(
        name=f"baton-{secrets.token_hex(16)}",
        filesystem=entries.filesystem(),
        network=network,
        writable_roots=entries.writable_roots(),
        workspace_roots=tuple(entries.roots) or None,
        not_held=(*entries.not_held, *entries.left_open),
        features=features,
    )


def own_roots(scratch: Iterable[Path], shells: Sequence[Path]) -> tuple[Path, ...]:
    """The folders of one's own that need an entry: scratch inside a shell is writable with that.

    Each writable root has Codex look for what it protects there, which takes some 8 ms of every command.
    """
    apart = (path for path in scratch if not any(map(path.is_relative_to, shells)))
    return (*apart, *shells)


def _with_copies(paths: Iterable[Path], place: WorkerPlace) -> list[Path]:
    """The paths, and for those in the workspace also their copies in the worktree."""
    listed = list(paths)
    inside = (path for path in listed if path.is_relative_to(place.workspace))
    return [*listed, *(place.cwd / path.relative_to(place.workspace) for path in inside)]


def _with_copied_globs(globs: Iterable[str], place: WorkerPlace) -> list[str]:
    listed = list(globs)
    prefix = f"{place.workspace}/"
    inside = (glob.removeprefix(prefix) for glob in listed if glob.startswith(prefix))
    return [*listed, *(f"{glob_for(place.cwd)}/{rest}" for rest in inside)]
