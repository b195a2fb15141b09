"""What the doctor finds: one line each, with what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Grade(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing is wrong."""
    WARNING = "warning"
    """Something works less well than it could."""
    FAILURE = "failure"
    """Something does not work."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    check: str
    """Stable name of what was looked at, such as `codex` or `presets`."""
    grade: Grade
    message: str
    fix: str | None = None
    """What a person can do."""
    repair: Callable[[], str] | None = None
    """A safe repair for --fix: changes nothing of the person's; says what it did."""

    def wire(self) -> dict[str, Any]:
        """JSON-ready."""
        data = {"check": self.check, "grade": self.grade.value, "message": self.message, "fix": self.fix}
        shown = {key: value for key, value in data.items() if value is not None}
        return {**shown, **({"repairable": True} if self.repair else {})}


def ok(check: str, message: str) -> Finding:
    """All is well."""
    return Finding(check, Grade.OK, message)


def note(check: str, message: str, fix: str | None = None) -> Finding:
    """Worth knowing."""
    return Finding(check, Grade.NOTE, message, fix)


def warning(
    check: str, message: str, fix: str | None = None, repair: Callable[[], str] | None = None
) -> Finding:
    """Works, but less well."""
    return Finding(check, Grade.WARNING, message, fix, repair)


def failure(
    check: str, message: str, fix: str | None = None, repair: Callable[[], str] | None = None
) -> Finding:
    """Does not work."""
    return Finding(check, Grade.FAILURE, message, fix, repair)
