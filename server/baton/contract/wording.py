"""Numbers of things and lists of reasons, in words."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

MOST_REASONS = 240
"""Characters of all reasons in one line."""

LEAST_REASON = 40
"""Characters below which a reason says nothing any more."""


def many(number: int, one: str, several: str | None = None) -> str:
    """`1 task`, `2 tasks`; `several` where more than one is not `one` with an s, such as `entries`."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def reasons_text(reasons: Mapping[str, str], most: int = MOST_REASONS) -> str:
    """`a: why; b: why` in at most so many characters: the longest are cut, then the last are counted."""
    told = [f"{name}: {' '.join(why.split())}" for name, why in reasons.items()]
    room, share = most - 2 * (len(told) - 1), most
    for n, text in enumerate(sorted(told, key=len)):
        share = room // (len(told) - n)
        if len(text) > share:
            break
        room -= len(text)
    else:
        return "; ".join(told)
    told = [textwrap.shorten(text, max(share, LEAST_REASON), placeholder=" …") for text in told]
    kept = len(told)
    while kept > 1 and len(_counted(told, kept)) > most:
        kept -= 1
    return _counted(told, kept)


def _counted(told: list[str], kept: int) -> str:
    more = [f"and {len(told) - kept} more"] if kept < len(told) else []
    return "; ".join([*told[:kept], *more])
