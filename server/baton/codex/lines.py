"""The app-server's messages: JSON objects, one per line."""

from __future__ import annotations

import json


def read_object(line: bytes) -> dict[str, object] | None:
    """The JSON object on a line, or None for anything else."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def write_object(value: dict[str, object]) -> bytes:
    """One line for the app-server."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
