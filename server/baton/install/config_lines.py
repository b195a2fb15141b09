"""A config.toml line by line: which lines are ours, and whether all the others are still there.

A line here is a logical one: a string that goes over several lines does not break it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

TABLE, SERVER = "mcp_servers", "baton"

_HEADER = re.compile(rf"\s*\[\s*{TABLE}\s*\.\s*\"?{SERVER}\"?\s*[.\]]")
_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"""{1,3}|\'{3}.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|\#[^\n]*''', re.DOTALL
)
"""A string in each of its forms, or a comment: what starts outside of any string."""
_ONE_LINE = re.compile(rf"\s*\"?{TABLE}\"?\s*=")
_REMARK = re.compile(r"\s*(?:#.*)?\s*")


def without_lines(text: str, instead: str = "") -> str:
    """Without our tables' headers and keys, `instead` in the place of the first.

    Comments after the last key stay: they may be about what follows.
    """
    kept: list[str] = []
    ours: list[str] | None = None
    for line in _logical_lines(text):
        if line.lstrip().startswith("["):
            kept += _trailing_remarks(ours or [])
            ours = [] if _HEADER.match(line) else None
            if ours is not None:
                kept.append(instead)
                instead = ""
        (kept if ours is None else ours).append(line)
    return "".join([*kept, *_trailing_remarks(ours or [])])


def one_line(text: str) -> str:
    """The line that holds the whole table of servers, empty when it is written otherwise."""
    for line in _logical_lines(text):
        if line.lstrip().startswith("["):
            return ""
        if _ONE_LINE.match(line):
            return line
    return ""


def remarks(text: str, says_ours: bool = False) -> Counter[str]:
    """Every comment; with `says_ours` without those that lie in our own entry."""
    found = _TOKEN.findall(_without_own_lines(text) if says_ours else text)
    return Counter(token.strip() for token in found if token.startswith("#"))


def _logical_lines(text: str) -> Iterator[str]:
    """Lines with their ends; a string over several lines does not break one."""
    masked = _TOKEN.sub(lambda found: "s" * len(found[0]) if "\n" in found[0] else found[0], text)
    return (text[line.start() : line.end()] for line in re.finditer(r"[^\n]*\n|[^\n]+", masked))


def _trailing_remarks(lines: list[str]) -> list[str]:
    """What follows the last line that says something."""
    last = max((at for at, line in enumerate(lines) if not _REMARK.fullmatch(line)), default=-1)
    return lines[last + 1 :]


def _without_own_lines(text: str) -> str:
    return without_lines(text) if _HEADER.search(text) else text
