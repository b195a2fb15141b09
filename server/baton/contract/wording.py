"""Numbers of things, in words."""

from __future__ import annotations


def many(number: int, one: str, several: str | None = None) -> str:
    """`1 task`, `2 tasks`; `several` where more than one is not `one` with an s, such as `entries`."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"
