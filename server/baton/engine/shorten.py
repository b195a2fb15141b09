"""Keeps an answer within what a supervisor can take in at once: its longest lists and texts give way."""

from __future__ import annotations

import json
from typing import Any

MAX_ANSWER = 7_500
"""Bytes of JSON in one answer; the protocol's own wrapping and the line of text come on top."""

SHORTENED = "shortened"
_WHERE_THE_REST_IS = "only the beginning of long lists and texts; inspect_run has the rest"

_ENTRY = 40
"""Texts up to this length are left as they are: ids, names of states, refs."""


def size(value: object) -> int:
    """Bytes of a value as JSON, as they go on the wire."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def fit(shown: dict[str, Any], most: int = MAX_ANSWER) -> dict[str, Any]:
    """`shown` itself when it is short enough; else a copy whose largest parts are halved until it is.

    Whatever is a part of it stays a part of it: no key is dropped. The copy says that it was shortened.
    """
    if size(shown) <= most:
        return shown
    short: dict[str, Any] = {**_bounded(shown, most), SHORTENED: _WHERE_THE_REST_IS}
    while size(short) > most and _halve_largest(short):
        pass
    return short


def _bounded(value: Any, most: int) -> Any:
    """A copy in which no text or list is longer than could ever fit, so that halving has little to do."""
    match value:
        case str() if len(value) > most:
            return value[:most] + "…"
        case dict():
            return {name: _bounded(part, most) for name, part in value.items()}
        case list() | tuple():
            kept: list[Any] = []
            room = 4 * most  # one heavy entry must not crowd out those after it
            for entry in value:
                if room <= 0:
                    break
                kept.append(_bounded(entry, most))
                room -= size(kept[-1])
            return kept
    return value


def _halve_largest(parts: dict[str, Any]) -> bool:
    """Halve the list or text that takes up most; False when nothing is left to be halved."""
    by_size = sorted(parts, key=lambda name: size(parts[name]), reverse=True)
    return any(_halve(parts, name) for name in by_size if name != SHORTENED)


def _halve(whole: Any, place: Any) -> bool:
    """Halve what is at a place of a dict or list, or the largest thing in it."""
    part = whole[place]
    match part:
        case str() if len(part) > _ENTRY:
            whole[place] = part[: len(part) // 2].rstrip("…") + "…"
            return True
        case dict():
            return _halve_largest(part)
        case list() if part:
            heaviest = max(range(len(part)), key=lambda number: size(part[number]))
            # One entry that outweighs all others gives way itself.
            if 2 * size(part[heaviest]) > size(part) and _halve(part, heaviest):
                return True
            if len(part) > 1:
                whole[place] = part[: len(part) // 2]
                return True
    return False
