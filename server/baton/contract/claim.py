"""What a worker says of its own work: a claim, never a conclusion."""

from enum import StrEnum
from typing import Any

from baton.contract.base import Wire
from baton.contract.shapes import strict_object


class ClaimStatus(StrEnum):
    """The worker's own word."""

    PASS = "PASS"
    BLOCKED = "BLOCKED"
    FAILED = "FAILED"


class Claim(Wire):
    """The final report of a worker, as its output schema asks for it."""

    status: ClaimStatus
    summary: str
    files_changed: list[str]
    checks_run: list[str]
    blockers: list[str]
    notes: list[str]


def claim_schema() -> dict[str, Any]:
    """The JSON schema given to the model as its output schema: strict, every key required."""
    texts = {"type": "array", "items": {"type": "string"}}
    properties: dict[str, Any] = {
        "status": {"type": "string", "enum": [status.value for status in ClaimStatus]},
        "summary": {"type": "string"},
        "filesChanged": texts,
        "checksRun": texts,
        "blockers": texts,
        "notes": texts,
    }
    return strict_object(properties)
