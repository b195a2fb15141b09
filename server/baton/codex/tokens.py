"""Counting tokens from the running totals that Codex reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from baton.contract.evidence import Usage

_PARTS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")


class Tally:
    """Adds up what was spent since its beginning.

    Each report holds the totals of the thread and what the latest answer cost. A resumed thread repeats its
    old report under the new turn, so a tally goes on from that of the turn before, where there is one. When
    a context overflows Codex reports a made-up one (no input, no output, a total as large as the context) and
    counts from zero again: neither is tokens spent. Input and output make the total here, whatever the report
    calls so.
    """

    def __init__(self, before: Tally | None = None) -> None:
        self._before: dict[str, int] | None = None if before is None else before._before
        self._spent: dict[str, int] | None = None

    @classmethod
    def of_new_thread(cls) -> Tally:
        """A tally of a thread that has not spent anything."""
        tally = cls()
        tally._before = dict.fromkeys(_PARTS, 0)
        return tally

    def rebase(self, total: Mapping[str, Any]) -> None:
        """Take a report of an earlier turn: what it holds is not spent here."""
        now = _counts(total)
        if now["input_tokens"] or now["output_tokens"]:
            self._before = now

    def add(self, total: Mapping[str, Any], last: Mapping[str, Any]) -> None:
        """Take one report; member names in camelCase or snake_case."""
        now, cost = _counts(total), _counts(last)
        if not now["input_tokens"] and not now["output_tokens"]:
            return
        before = self._before
        if before is None or any(now[name] < before[name] for name in _PARTS):
            before = {name: now[name] - cost[name] for name in _PARTS}
        self._before = now
        if now == before:
            return
        spent = self._spent or dict.fromkeys(_PARTS, 0)
        self._spent = {name: spent[name] + now[name] - before[name] for name in _PARTS}

    def usage(self) -> Usage:
        """What was spent so far; unknown when nothing was reported."""
        if self._spent is None:
            return Usage()
        total = self._spent["input_tokens"] + self._spent["output_tokens"]
        return Usage(**self._spent, total_tokens=total)


def _counts(table: Mapping[str, Any]) -> dict[str, int]:
    values = {name: table.get(name, table.get(to_camel(name))) for name in _PARTS}
    return {name: value if isinstance(value, int) else 0 for name, value in values.items()}
