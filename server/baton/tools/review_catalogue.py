"""What the optional tool for reviews is called, takes, answers and may do."""

from __future__ import annotations

from typing import Any

from baton.contract.review import ReviewCall, ReviewState
from baton.tools.catalogue import Hints, ToolSpec

SENDS = Hints(read_only=False, destructive=False, idempotent=False, open_world=True)
"""It changes no file, and sends material to other agents once that is confirmed."""


def review_specs() -> tuple[ToolSpec, ...]:
    """`review`, for a person who switched reviews on."""
    return (
        ToolSpec(
            name="review",
            title="Review by other agents",
            description=(
                "Has other agents judge work. plan: shows what would be sent to whom, sends nothing. run: "
                "sends it once the person agreed. finalise: give every critical and important finding a "
                "disposition. retry: ask reviewers without findings again. recheck: plan again against the "
                "fix. status: wait, or read a part. Findings are opinions: check each in the code."
            ),
            arguments=ReviewCall,
            output=_output(),
            hints=SENDS,
            asks_person=True,
        ),
    )


def _output() -> dict[str, Any]:
    string, integer, listed = {"type": "string"}, {"type": "integer"}, {"type": "array"}
    texts = {"type": "array", "items": string}
    properties: dict[str, Any] = {
        "reviewId": string,
        "state": {"type": "string", "enum": [state.value for state in ReviewState]},
        "confirm": string,
        "secrets": texts,
        "suspects": texts,
        "masked": texts,
        "requests": integer,
        "goal": string,
        "scope": {"type": "object"},
        "files": texts,
        "web": {"type": "boolean"},
        "estimatedCostUsd": {"type": ["number", "null"]},
        "escalate": {"type": "object"},
        "notes": texts,
        "findings": {"type": "array", "items": {"type": "object"}},
        "counts": {"type": "object"},
        "openSerious": integer,
        "unparsed": texts,
        "parent": string,
        "confirmedBy": string,
        "note": string,
        "conclusion": string,
        "dispositions": {"type": "object"},
        "open": texts,
        "what": string,
        "history": listed,
        "bytes": integer,
        "shortened": string,
        "text": string,
        "nextOffset": integer,
        "material": listed,
        "reviewers": listed,
        "consultationId": string,
        "next": string,
        "error": string,
        "message": string,
    }
    return {"type": "object", "properties": properties}
