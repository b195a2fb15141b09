"""Text on its way into the database: always UTF-8, whatever a worker, a program or a file name held.

Lone surrogates become visible escapes (`\\ud800`), as `backslashreplace` writes them, and numbers that JSON
does not have become null. What is stored can therefore always be read, compared and sent on. Paths are the
exception: they are stored as the bytes they are (`os.fsencode`).
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue


_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def storable_text(text: str) -> str:
    """The text with lone surrogates escaped; the same text when it has none."""
    # Nearly all texts are ASCII, which Python knows without looking.
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def storable(value: JsonValue) -> JsonValue:
    """The same JSON value with every text and key storable and every number finite."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable_text(key): storable(item) for key, item in value.items()}
    return value


def to_json(value: JsonValue) -> str:
    """Compact JSON text of a storable form of `value`."""
    return _COMPACT.encode(storable(value))


def from_json(text: str) -> JsonValue:
    value: JsonValue = json.loads(text)
    return value
