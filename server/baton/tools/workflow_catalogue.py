"""What the optional tool for whole jobs is called, takes, answers and may do."""

from __future__ import annotations

from typing import Any

from baton.contract.workflow import WorkflowCall, WorkflowState
from baton.tools.catalogue import WORKS, ToolSpec


def workflow_specs() -> tuple[ToolSpec, ...]:
    """`workflow`, for a person who switched workflows on."""
    return (
        ToolSpec(
            name="workflow",
            title="A job in phases",
            description=(
                "Holds a whole job together: research, plan, brief, implement, apply, test, review, "
                "synthesise, fix. start it; each answer says in `next` what is needed. next: shows a "
                "delegated step, and with confirm does it, then runs tests and lands what is due. record: "
                "your own step; commits are checked by git. replan: other bindings, back to a step. status, "
                "cancel."
            ),
            arguments=WorkflowCall,
            output=_output(),
            hints=WORKS,
            asks_person=True,
        ),
    )


def _output() -> dict[str, Any]:
    string, integer = {"type": "string"}, {"type": "integer"}
    texts = {"type": "array", "items": string}
    objects = {"type": "array", "items": {"type": "object"}}
    properties: dict[str, Any] = {
        "workflowId": string,
        "state": {"type": "string", "enum": [state.value for state in WorkflowState]},
        "round": string,
        "did": texts,
        "note": string,
        "working": {"type": "object"},
        "due": {"type": "object"},
        "confirm": string,
        "would": {"type": "object"},
        "reviewId": string,
        "findings": objects,
        "moreFindings": integer,
        "unparsed": texts,
        "goal": string,
        "workspace": string,
        "bindings": {"type": "object"},
        "turns": integer,
        "costUsd": {"type": ["number", "null"]},
        "steps": {"type": ["integer", "array"]},
        "what": string,
        "text": string,
        "bytes": integer,
        "nextOffset": integer,
        "shortened": string,
        "next": string,
        "error": string,
        "message": string,
    }
    return {"type": "object", "properties": properties}
