"""Options of the form NAME=VALUE."""

from __future__ import annotations

from collections.abc import Iterable

from baton.contract.errors import InvalidInput


def read_pairs(texts: Iterable[str], option: str, form: str) -> dict[str, str]:
    """By name; the last one of a name counts. Raises `InvalidInput` naming the `option` and its `form`."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InvalidInput(f"{option} expects {form}, got {text!r}")
        pairs[name] = value
    return pairs
