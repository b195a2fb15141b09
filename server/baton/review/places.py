"""Which lines a diff shows and changes, and where a finding lies in it. Pure."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from typing import Any

from baton.contract.review import Finding, Located

Span = list[int]
"""First and last line of the new file."""

Places = dict[str, dict[str, list[Span]]]
"""By path: the `shown` and the `changed` lines."""

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")

NEARBY = 3
"""Lines beside a change that count as shown."""


def places_of_diff(diff: str) -> Places:
    """Read a unified diff of git's; what is no part of one is passed over."""
    places: Places = {}
    path, old, new, line = None, 0, 0, 0
    for text in diff.split("\n"):
        if old > 0 or new > 0:
            entry = places.setdefault(path or "", {"shown": [], "changed": []})
            mark = text[:1]
            if mark == "+":
                _extend(entry["changed"], line)
            if mark in ("+", " ", ""):
                _extend(entry["shown"], line)
                line, new = line + 1, new - 1
            if mark in ("-", " ", ""):
                old -= 1
                if mark == "-":
                    # Where something was taken away, the line that follows is what changed.
                    _extend(entry["changed"], max(line, 1))
            continue
        if text.startswith("diff --git "):
            # A file whose mode alone changed, an empty or a binary one has no other line with its name.
            path = None
            if (named := _named_twice(text[11:])) is not None:
                places.setdefault(named, {"shown": [], "changed": []})
        elif text.startswith("--- ") and path is None:
            path = _name(text[4:])
        elif text.startswith("+++ "):
            path = _name(text[4:]) or path
            places.setdefault(path or "", {"shown": [], "changed": []})
        elif match := _HUNK.match(text):
            old, line, new = int(match[1] or 1), int(match[2]), int(match[3] or 1)
        elif text.startswith(("rename to ", "copy to ")):
            path = _unquoted(text.split(" to ", 1)[1])
            places.setdefault(path, {"shown": [], "changed": []})
    places.pop("", None)
    return places


def unshown_files(diff: str) -> list[str]:
    """The files of a diff of git's of which it says only that they differ."""
    found, path, left = [], None, [0, 0]
    for text in diff.split("\n"):
        if any(count > 0 for count in left):
            left[0] -= text[:1] in ("-", " ", "")
            left[1] -= text[:1] in ("+", " ", "")
        elif text.startswith("diff --git "):
            path = _named_twice(text[11:])
        elif text.startswith("rename to "):
            path = _unquoted(text[10:])
        elif text.startswith("Binary files ") and path is not None:
            found.append(path)
        elif match := _HUNK.match(text):
            left = [int(match[1] or 1), int(match[3] or 1)]
    return found


def places_of_files(files: Mapping[str, str]) -> Places:
    """Whole files: every line is shown, none is changed."""
    return {path: {"shown": [[1, text.count("\n") + 1]], "changed": []} for path, text in files.items()}


def locate_finding(finding: Finding, places: Mapping[str, Any]) -> Finding:
    """The finding with its path as the material has it, and whether it lies there.

    Reviewers write `a/x.py`, `./x.py` or the end of a path: the one file that it can mean is taken.
    """
    if finding.path is None or not places:
        return finding.model_copy(update={"located": Located.NONE})
    path, line = _split(finding.path, finding.line)
    known = _match(path, places)
    if known is None:
        return finding.model_copy(update={"path": path, "line": line, "located": Located.OUTSIDE})
    located = Located.FILE
    if line is not None:
        if _in(line, places[known]["changed"], 0):
            located = Located.CHANGED
        elif _in(line, places[known]["shown"], NEARBY):
            located = Located.NEAR
    return finding.model_copy(update={"path": known, "line": line, "located": located})


def _extend(spans: list[Span], line: int) -> None:
    if spans and spans[-1][0] <= line <= spans[-1][1] + 1:
        spans[-1][1] = max(spans[-1][1], line)
    else:
        spans.append([line, line])


def _name(text: str) -> str | None:
    # git ends a name that has blanks in it with a tab.
    text = text.split("\t")[0] if not text.startswith('"') else text.rstrip("\t")
    name = _unquoted(text)
    return None if text == "/dev/null" else name.partition("/")[2] if name[:2] in ("a/", "b/") else name


def _named_twice(text: str) -> str | None:
    """The name in `a/NAME b/NAME`; None where the two differ, as after a rename, which has lines for both."""
    half = (len(text) - 1) // 2
    old, new = text[:half], text[half + 1 :]
    if text[half : half + 1] != " " or _name(old) != _name(new):
        return None
    return _name(old)


def _unquoted(text: str) -> str:
    if not (len(text) > 1 and text.startswith('"') and text.endswith('"')):
        return text
    return codecs.escape_decode(text[1:-1].encode())[0].decode("utf-8", "replace")


def _split(path: str, line: int | None) -> tuple[str, int | None]:
    match = re.fullmatch(r"(.+?):([0-9]+)(?:[:-][0-9]+)?", path)
    if match:
        # More digits than that are no line of anything.
        return match[1], line if line is not None else int(match[2]) if len(match[2]) < 10 else None
    return path, line


def _match(path: str, known: Iterable[str]) -> str | None:
    names = list(known)
    if path in names:
        return path
    plain = path.strip().strip("`\"'").replace("\\", "/").removeprefix("./")
    for candidate in (plain, plain[2:] if plain[:2] in ("a/", "b/") else plain):
        if candidate in names:
            return candidate
    ends = [name for name in names if plain and (name.endswith("/" + plain) or plain.endswith("/" + name))]
    return ends[0] if len(ends) == 1 else None


def _in(line: int, spans: Iterable[Span], margin: int) -> bool:
    return any(first - margin <= line <= last + margin for first, last in spans)
