"""What an exploration answers: findings that cite files, and what checking each citation showed."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from baton.contract.base import Wire
from baton.contract.claim import ClaimStatus
from baton.contract.shapes import strict_object


class Finding(Wire):
    """One statement with the place that proves it, in the worker's words."""

    statement: str
    file: str
    """Relative to the workspace."""
    line: int
    """From 1."""
    quote: str
    """The words of the file that prove it."""


class Exploration(Wire):
    """The final report of a worker that explores."""

    status: ClaimStatus
    summary: str
    findings: list[Finding]
    blockers: list[str]
    notes: list[str]


class CitationStatus(StrEnum):
    """What the file says of a citation."""

    CONFIRMED = "confirmed"
    """The quote is there, at that line."""
    MOVED = "moved"
    """The quote is in the file, at another line."""
    NOT_FOUND = "not_found"
    """No such file, or the quote is not in it."""


class CheckedFinding(Finding):
    """A finding as it was checked against the tree."""

    status: CitationStatus
    found_line: int | None = None
    """The line of a quote that is elsewhere: of several the nearest."""
    detail: str | None = None
    """Why it was not found."""

    @property
    def holds(self) -> bool:
        return self.status is not CitationStatus.NOT_FOUND


def exploration_schema() -> dict[str, Any]:
    """The JSON schema given to an exploring model as its output schema: strict, every key required."""
    text = {"type": "string"}
    texts = {"type": "array", "items": text}
    finding = {"statement": text, "file": text, "line": {"type": "integer"}, "quote": text}
    properties: dict[str, Any] = {
        "status": {"type": "string", "enum": [status.value for status in ClaimStatus]},
        "summary": text,
        "findings": {"type": "array", "items": strict_object(finding)},
        "blockers": texts,
        "notes": texts,
    }
    return strict_object(properties)
