"""How a task's scope is to be held: what the sandbox is told, and what only the captured tree can show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from baton.contract.evidence import PatternReading
from baton.contract.states import Enforcement


@dataclass(frozen=True)
class ScopePlan:
    """The sandbox's part of a scope. Every path is absolute, without symbolic links on the way."""

    write_dirs: tuple[Path, ...] = ()
    """Roots below which the worker may write; none lies below another."""
    pinned_dirs: tuple[Path, ...] = ()
    """Directories inside a write root that must be entered as writable roots of their own, never collapsed.

    They lie on the way from a write root to a read-only or denied path. Only a mount point cannot be renamed:
    without its own entry such a directory could be moved away together with what it protects.
    """
    readonly: tuple[Path, ...] = ()
    """Existing files and directories inside write roots that stay read-only."""
    made_dirs: tuple[Path, ...] = ()
    """Write roots and their parents that do not exist yet, outermost first; to be made before the launch."""
    hidden_paths: tuple[Path, ...] = ()
    """Existing paths that the worker may not read, in the worktree and in the person's workspace."""
    hidden_globs: tuple[str, ...] = ()
    """Absolute globs (`*` within a name, `**` across names, `[…]`) that the worker may not read."""
    visible: tuple[Path, ...] | None = None
    """The only parts of the worktree that the worker may read; None: all of it but the hidden ones."""
    readings: tuple[PatternReading, ...] = ()
    """How each pattern was read, in the order of the task."""
    enforcement: Enforcement = Enforcement.PREVENTED
    """`detected` when at least one way to cross the scope is left to detection."""
    why_detected: str | None = None
    """One line that names what is only detected."""

    @property
    def writable_roots(self) -> tuple[Path, ...]:
        """Every path that needs an entry with write access: the roots and what is pinned inside them."""
        return tuple(sorted({*self.write_dirs, *self.pinned_dirs}))
