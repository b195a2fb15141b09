"""Windows of long texts and lists: what fits into so many bytes from an offset, and where to go on."""

from __future__ import annotations

from typing import Any

from baton.contract.errors import InvalidInput
from baton.engine.shorten import size

MAX_GROWTH = 1_000
"""Bytes by which escaping may make a text longer than the limit."""


def entries_window(name: str, entries: list[dict[str, Any]], offset: int, limit: int) -> dict[str, Any]:
    """As many of the entries from number `offset` on as fit into `limit` bytes, at least one."""
    end, room = offset, limit
    while end < len(entries) and (room >= size(entries[end]) or end == offset):
        room -= size(entries[end])
        end += 1
    return {name: entries[offset:end]} | ({"nextOffset": end} if end < len(entries) else {})


def text_window(text: str, offset: int, limit: int) -> dict[str, Any]:
    """About `limit` bytes of UTF-8 text from byte `offset`, edges moved to whole characters.

    Raises `InvalidInput` beyond the end.
    """
    data = text.encode("utf-8", "replace")
    if offset > len(data):
        raise InvalidInput(f"offset: {offset} is beyond the end; there are {len(data)} bytes")
    end = min(offset + limit, len(data))
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end -= 1
    if end <= offset:
        end = min(offset + 4, len(data))
    # Control characters and quotes grow on the wire.
    while end - offset > 8 and size(_window(data, offset, end)) > limit + MAX_GROWTH:
        end = offset + (end - offset) * 3 // 4
        while data[end] & 0xC0 == 0x80:
            end -= 1
    shown: dict[str, Any] = {"text": _window(data, offset, end)}
    if end < len(data):
        shown["nextOffset"] = end
        shown["bytes"] = len(data)
    return shown


def _window(data: bytes, begin: int, end: int) -> str:
    return data[begin:end].decode("utf-8", "ignore")
