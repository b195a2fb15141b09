"""What a task may change and read: its patterns, read once, and the one answer for a path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from baton.contract.errors import InvalidInput
from baton.contract.states import ChangeIntent
from baton.contract.task import Task
from baton.workspace.pattern import Pattern, read_pattern

NEVER_WRITABLE = b".git"
"""No scope can name it: what git reads and runs lies below."""

EXPLICIT_ONLY = (b".agents", b".codex")
"""What Codex itself obeys: a pattern must name it to cover it; `**` does not."""


@dataclass(frozen=True)
class Scope:
    """The compiled scope of one task. Paths are bytes, relative to the workspace, separated by slashes."""

    allowed: tuple[Pattern, ...] = ()
    forbidden: tuple[Pattern, ...] = ()
    hidden: tuple[Pattern, ...] = ()
    changes: bool = True
    """False when the task may change nothing at all."""

    def permits(self, path: bytes) -> str | None:
        """None when a change of the file at `path` is in scope, else the rule that it breaks, in a few words.

        Forbidden wins over allowed. Case counts. The path itself is judged, never where a link on it leads.
        """
        names = path.split(b"/")
        if not path or b"" in names or b"." in names or b".." in names:
            return "not a path inside the workspace"
        if any(name.lower() == NEVER_WRITABLE for name in names):
            return ".git is never writable"
        if not self.changes:
            return "no change is allowed"
        for pattern in self.forbidden:
            if pattern.matches(path):
                return f"forbidden by {pattern.text}"
        special = special_names(names)
        matching = [pattern for pattern in self.allowed if pattern.matches(path)]
        if any(special <= pattern.literal_names for pattern in matching):
            return None
        if matching:
            return f"{min(special).decode()} needs a pattern that names it"
        return "not in allowedFiles"

    def hides(self, path: bytes) -> bool:
        """Whether the worker may not read the file at `path`."""
        return any(pattern.matches(path) for pattern in self.hidden)


def read_scope(task: Task) -> Scope:
    """The scope that a task declares.

    Raises `InvalidInput`, one line, when a pattern is negated, empty, absolute, escaping or unreadable, when
    `.git` is to be changed, or when a task that is to change files allows none.
    """
    changes = task.change_intent is not ChangeIntent.FORBIDDEN
    if changes and not task.allowed_files:
        raise InvalidInput(
            "allowedFiles: required, but empty; name what may change, or set changeIntent to forbidden"
        )
    # A plain name is read so as to allow less and to forbid and hide more.
    allowed = _read_all(task.allowed_files, "allowedFiles", narrow=True)
    for pattern in allowed:
        if any(name.lower() == NEVER_WRITABLE for name in pattern.literal_names):
            raise InvalidInput(f"allowedFiles: pattern {pattern.text!r} names .git, which is never writable")
    return Scope(
        allowed=allowed,
        forbidden=_read_all(task.forbidden_files, "forbiddenFiles"),
        hidden=_read_all(task.hidden_files, "hiddenFiles"),
        changes=changes,
    )


def special_names(names: Iterable[bytes]) -> frozenset[bytes]:
    """The names among them that a pattern must spell out to cover."""
    return frozenset(name for name in names if name in EXPLICIT_ONLY)


def _read_all(texts: Sequence[str], role: str, *, narrow: bool = False) -> tuple[Pattern, ...]:
    return tuple(read_pattern(text, role, narrow=narrow) for text in dict.fromkeys(texts))
