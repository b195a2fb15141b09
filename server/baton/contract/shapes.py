"""JSON Schemas of what a model is to answer with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def strict_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object with exactly these keys, as services want the schema of a structured answer."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": dict(properties),
    }
