"""Where a check runs and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from baton.codex.binary import CodexBinary
from baton.codex.home import WorkerHome


@dataclass(frozen=True)
class CheckPlace:
    """One clean checkout, and the person's tree of which it is a copy. Paths are absolute, free of links."""

    tree: str
    """Object id of what is checked out, for the evidence."""
    worktree: Path
    """The whole checkout; a check may write everywhere in it."""
    cwd: Path
    """The workspace inside the checkout: where checks run."""
    scratch: Path
    """A folder of this check's own, for its home, temporary files and caches. Its output is kept beside it
    meanwhile: the folder above must be out of the check's reach."""
    person_root: Path
    """The person's repository or folder that the checkout copies. Checks cannot read it, but for `shared`."""
    shared: tuple[Path, ...] = ()
    """What of the person's tree a check may read: dependency folders that the checkout links to."""
    modules: tuple[Path, ...] | None = None
    """What of the checkout's folders and links is named `node_modules` and may be a link; None: not known."""
    readable: tuple[Path, ...] = ()
    """What else must stay readable below a denied folder, such as the repository that git commands need."""
    shells: tuple[Path, ...] = ()
    """Folders that hold nothing but one of `readable` each; made writable, so that it is seen at all."""
    writable: tuple[Path, ...] | None = None
    """What of the checkout a check may write; None: everything."""

    @property
    def in_place(self) -> bool:
        """Whether the check runs on the person's own tree, which then is no copy: nothing in it is turned
        towards a checkout."""
        return self.worktree == self.person_root


@dataclass(frozen=True)
class CheckSandbox:
    """The sandbox that checks run in."""

    binary: CodexBinary
    home: WorkerHome
    denied: tuple[Path, ...] = ()
    """Never readable: Baton's state, other runs, what the session may not read."""
    denied_globs: tuple[str, ...] = ()
    loopback: bool = True
    """Whether a private loopback is to be had on this machine, as the probe found."""
    direct: bool = False
    """Whether Codex's sandbox helper may be started by itself, as the probe found."""


@dataclass(frozen=True)
class CheckLimits:
    """How much a check may use before it is ended."""

    seconds: float = 600.0
    memory_bytes: int | None = None
    output_bytes: int = 64 * 1024 * 1024
    shown_characters: int = 2000
    """How much of the output the result itself carries."""


@dataclass(frozen=True)
class CheckEnvironment:
    """What the person's environment and policy say about checks."""

    base: Mapping[str, str]
    """The person's environment; only allow-listed names of it reach a check."""
    extra_names: tuple[str, ...] = ()
    """Names that the person added to the allow-list."""
    unsandboxed: tuple[tuple[str, ...], ...] = ()
    """Beginnings of commands that the person lets run unsandboxed; never from a call or a repository."""
    run_id: str | None = None
