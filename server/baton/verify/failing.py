"""Picks what a reader of a failed check needs from its output: the failing part first, then the end."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

_STRONG = re.compile(
    r"""
      ^=+\s(?:FAILURES|ERRORS)\s=+$            # pytest
    | ^E\s{2,}\S
    | ^(?:FAIL|ERROR):\s                       # unittest
    | ^Traceback\s\(most\srecent\scall\slast\)
    | ^\s*---\sFAIL:                           # go
    | ^FAIL\s
    | ^error(?:\[E\d+\])?:                     # rustc, cargo
    | ^thread\s'.*'\s.*panicked\sat
    | ^\s*(?:●|✕|✗|✖|×)\s                      # jest, mocha, vitest
    | ^\s*not\sok\s\d                          # TAP
    | ^\[ERROR\]                               # maven
    | ^>\sTask\s.*\sFAILED$                    # gradle
    | :\d+(?::\d+)?:\s(?:fatal\s)?error:?\s    # compilers, mypy, tsc
    | :\d+:\d+\s-\serror\sTS\d+
    | ^\S*:\sundefined\sreference\sto
    | ^(?:\w+\.)*\w*(?:Error|Exception):\s
    | ^fatal:\s                                # git
    | ^make(?:\[\d+\])?:\s\*\*\*
    | ^npm\sERR!
    """,
    re.VERBOSE,
)
_WEAK = re.compile(
    r"\b(?:errors?|fail(?:ed|ures?|s)?|exception|panic(?:ked)?|fatal|cannot|refused|denied)\b", re.I
)
_HARMLESS = re.compile(
    r"\b(?:0|no)\s+(?:errors?|fail(?:ed|ures?)?|warnings?)\b|\b(?:errors?|fail(?:ed|ures?)?)[:=]\s*0\b", re.I
)

CUT = "[…]"
"""Stands for what was left out."""


def failing_part(output: str, limit: int = 2000) -> str:
    """At most `limit` characters of an output: the first failure with what surrounds it, then the end.

    Escape sequences and progress lines that were overwritten are left out. A short output is given whole;
    one without any recognisable failure gives its end.
    """
    lines = _clean(output)
    whole = "\n".join(lines)
    if len(whole) <= limit:
        return whole
    first = _first_failure(lines)
    tail = _last(lines, limit if first is None else limit * 2 // 5)
    if first is None:
        return CUT + "\n" + tail if len(tail) + len(CUT) < limit else tail
    if first >= len(lines) - tail.count("\n") - 1:
        return _last(lines, limit)
    room = limit - len(tail) - 2 * (len(CUT) + 1) - 1
    # One line before it often names the test; not where it would push the failure itself out.
    start = first - 1 if first and len(lines[first - 1]) + len(lines[first]) < room - 1 else first
    head = _first(lines[start:], room)
    before = f"{CUT}\n" if start else ""
    return f"{before}{head}\n{CUT}\n{tail}"


def _clean(output: str) -> list[str]:
    text = _ESCAPES.sub("", output).replace("\r\n", "\n")
    # A terminal shows what came after the last carriage return of a line.
    lines = [_CONTROLS.sub("", line.rstrip("\r").rpartition("\r")[2]).rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _first_failure(lines: list[str]) -> int | None:
    strong = (number for number, line in enumerate(lines) if _STRONG.search(line))
    weak = (number for number, line in enumerate(lines) if _WEAK.search(line) and not _HARMLESS.search(line))
    return next(strong, next(weak, None))


def _first(lines: list[str], room: int) -> str:
    """Whole lines from the start as far as they fit; a first line that is too long is cut."""
    taken: list[str] = []
    left = room
    for line in lines:
        if len(line) + 1 > left:
            break
        taken.append(line)
        left -= len(line) + 1
    return "\n".join(taken) if taken else lines[0][: max(0, room)]


def _last(lines: list[str], room: int) -> str:
    """Whole lines at the end as far as they fit; a last line that is too long is cut at its front."""
    taken: list[str] = []
    left = room
    for line in reversed(lines):
        if len(line) + 1 > left:
            break
        taken.append(line)
        left -= len(line) + 1
    return "\n".join(reversed(taken)) if taken else lines[-1][-room:]
