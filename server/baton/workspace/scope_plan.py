"""From a scope to a sandbox: what is writable, what stays read-only in it, what is left to detection.

A sandbox gives write access to existing directories only. So a directory is held exactly; a file becomes its
directory with the other entries read-only; any other pattern becomes its narrowest literal directory.
Whatever stays writable beyond the scope is named, and the captured tree shows it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from baton.contract.evidence import PatternReading
from baton.contract.scope import ScopePlan
from baton.contract.states import Enforcement
from baton.workspace.names import below, parent
from baton.workspace.pattern import Pattern
from baton.workspace.protect import Protection, protect
from baton.workspace.scope import Scope, special_names
from baton.workspace.scope_hidden import hidden_globs, hidden_paths
from baton.workspace.scope_target import Target, find_target

MAX_REASONS = 3
"""Reasons in one line before "and n more"."""


@dataclass(frozen=True)
class PlanLimits:
    """What a plan may cost; each entry is a mount, and mounts make every command of the worker slower."""

    siblings: int = 100
    """Entries of one directory that are made read-only to hold a file scope."""
    entries: int = 100
    """Read-only and pinned entries in all."""
    roots: int = 40
    """Writable roots; each costs a handful of mounts."""


def plan_scope(
    scope: Scope,
    cwd: Path,
    limits: PlanLimits | None = None,
    *,
    workspace: Path | None = None,
    skip: Iterable[Path] = (),
) -> ScopePlan:
    """Plan how a sandbox holds `scope` in the worktree folder `cwd`; reads directories, changes nothing.

    `workspace` is the person's own folder, where hidden files are denied as well. `skip` are folders of
    dependencies, absolute: a name at any depth does not mean them. Links are never followed. Raises
    `InvalidInput` when an allowed pattern goes through a symbolic link or through a file.
    """
    limits = limits or PlanLimits()
    cwd = Path(os.path.realpath(cwd))
    skipped = {Path(os.path.realpath(path.parent)) / path.name for path in skip}
    targets = [find_target(pattern, cwd, skipped) for pattern in scope.allowed] if scope.changes else []
    wanted = {root for target in targets for root in target.roots if not _all_forbidden(scope, root)}
    roots, widened = _few(wanted, limits.roots)
    protection = protect(scope, cwd, roots, limits.siblings, limits.entries)
    if widened:
        protection.unprotected.append(
            f"whole parent directories, as the scope needs more than {limits.roots}"
        )
    readings = (
        *(_read_allowed(target, scope, roots) for target in targets),
        *(_read_forbidden(pattern, cwd, roots, protection) for pattern in scope.forbidden),
        *(_read_hidden(pattern, workspace) for pattern in scope.hidden),
    )
    opened = [target.open for target in targets if target.open and not _covered(scope, target.roots)]
    opened += [
        f"new files that match {reading.pattern}"
        for reading in readings
        if reading.role == "forbidden" and reading.enforcement is Enforcement.DETECTED
    ]
    opened += protection.unprotected
    folders = (cwd,) if workspace is None else (cwd, Path(os.path.realpath(workspace)))
    return ScopePlan(
        write_dirs=_paths(cwd, roots),
        pinned_dirs=_paths(cwd, protection.pins),
        readonly=_paths(cwd, protection.readonly),
        made_dirs=_paths(cwd, {path for target in targets for path in target.missing}),
        hidden_paths=hidden_paths(scope, folders),
        hidden_globs=hidden_globs(scope, folders),
        readings=readings,
        enforcement=Enforcement.DETECTED if opened else Enforcement.PREVENTED,
        why_detected=_why(opened),
    )


def make_dirs(plan: ScopePlan, made: Callable[[Path], object] | None = None) -> None:
    """Make the directories that the plan's write access needs. Git does not see empty ones.

    `made` is told each that was not there. Raises `OSError`.
    """
    for path in plan.made_dirs:
        try:
            path.mkdir()
        except FileExistsError:
            if not path.is_dir():
                raise
        else:
            if made is not None:
                made(path)


def _all_forbidden(scope: Scope, root: bytes) -> bool:
    return any(pattern.covers_directory(pattern.state_at(root)) for pattern in scope.forbidden)


def _few(roots: set[bytes], most: int) -> tuple[tuple[bytes, ...], bool]:
    """The roots that lie below no other; when there are too many, the deepest become their parents."""
    widened = False
    while True:
        kept = tuple(sorted(root for root in roots if not _within_another(root, roots)))
        if len(kept) <= max(most, 1):
            return kept, widened
        deepest = max(kept, key=lambda root: (root.count(b"/"), root != b""))
        roots = {parent(root) if root == deepest else root for root in kept}
        widened = True


def _within_another(root: bytes, roots: Iterable[bytes]) -> bool:
    for other in roots:
        if root != other and (not other or root.startswith(other + b"/")):
            between = root[len(other) :].strip(b"/").split(b"/")
            # Codex keeps these read-only in any writable root: what lies in them needs an entry of its own.
            if not special_names(between):
                return True
    return False


def _covered(scope: Scope, roots: Sequence[bytes]) -> bool:
    """Whether each root is in scope as a whole, so that nothing beside the pattern is out of scope."""
    return all(
        any(pattern.covers_directory(pattern.state_at(root)) for pattern in scope.allowed) for root in roots
    )


def _read_allowed(target: Target, scope: Scope, roots: Sequence[bytes]) -> PatternReading:
    prevented = target.open is None or _covered(scope, target.roots)
    reading = target.reading if prevented else f"{target.reading}; only detected: {target.open}"
    unwritable = [root for root in target.roots if not any(below(root, kept) for kept in roots)]
    if unwritable:
        reading = f"{reading}; forbiddenFiles takes it back"
    return _reading(target.pattern, "allowed", reading, prevented)


def _read_forbidden(
    pattern: Pattern, cwd: Path, roots: Sequence[bytes], protection: Protection
) -> PatternReading:
    if not any(pattern.state_at(root) for root in roots):
        return _reading(pattern, "forbidden", "nothing that matches can be written", True)
    if pattern.exact is not None:
        if pattern.exact in protection.readonly or parent(pattern.exact) in protection.readonly:
            return _reading(pattern, "forbidden", "this path, which stays read-only", True)
        if (cwd / os.fsdecode(pattern.exact)).exists():
            return _reading(pattern, "forbidden", "this path; a change is only detected", False)
        return _reading(pattern, "forbidden", "this path, not there yet; making it is only detected", False)
    what = "what exists is read-only where it can be, what is new is only detected"
    return _reading(pattern, "forbidden", f"whatever matches; {what}", False)


def _read_hidden(pattern: Pattern, workspace: Path | None) -> PatternReading:
    places = "in the worktree" if workspace is None else "in the worktree and in the workspace itself"
    return _reading(pattern, "hidden", f"whatever matches is unreadable {places}", True)


def _reading(pattern: Pattern, role: str, reading: str, prevented: bool) -> PatternReading:
    enforcement = Enforcement.PREVENTED if prevented else Enforcement.DETECTED
    return PatternReading(pattern=pattern.text, role=role, reading=reading, enforcement=enforcement)


def _why(opened: Sequence[str]) -> str | None:
    if not opened:
        return None
    unique = list(dict.fromkeys(opened))
    more = f" and {len(unique) - MAX_REASONS} more" if len(unique) > MAX_REASONS else ""
    return "only detected: " + "; ".join(unique[:MAX_REASONS]) + more


def _paths(cwd: Path, paths: Iterable[bytes]) -> tuple[Path, ...]:
    return tuple(cwd / os.fsdecode(path) for path in sorted(paths))
