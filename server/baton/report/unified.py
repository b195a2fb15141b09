"""Reads a unified diff of git's into files and lines, cut where it gets too long. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_LINE = 2_000
"""Characters shown of one line."""

_HUNK = re.compile(rb"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True)
class DiffLine:
    """One line; the numbers are those of the old and the new file, None where it is not in it."""

    kind: str
    """`added`, `removed`, `same`, `hunk` or `note`."""
    text: str
    old: int | None = None
    new: int | None = None


_FILE = DiffLine("file", "")
"""Marks where a file begins."""


@dataclass
class FileDiff:
    """One file of a diff."""

    name: str
    lines: list[DiffLine] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What git says of it besides its lines: modes, renames, binary content."""

    @property
    def added(self) -> int:
        return sum(line.kind == "added" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.kind == "removed" for line in self.lines)


@dataclass(frozen=True)
class Diff:
    """A diff, or a part of one."""

    files: list[FileDiff]
    next_line: int | None
    """The line of the whole diff to go on with; None when nothing was left out."""
    total_lines: int


def read_diff(data: bytes, first: int = 0, limit: int = 2_000) -> Diff:
    """Lines `first` to `first + limit` of a diff, counted over the whole of it, by file."""
    raw = data.split(b"\n")
    if raw and not raw[-1]:
        raw.pop()
    files: list[FileDiff] = []
    for number, (name, line) in enumerate(_lines(raw)):
        if number < first:
            continue
        if number >= first + limit:
            break
        if not files or line is _FILE:
            files.append(FileDiff(name))
        files[-1].name = name
        if line is None or line is _FILE:
            continue
        if line.kind == "note":
            files[-1].notes.append(line.text)
        else:
            files[-1].lines.append(line)
    return Diff(files, first + limit if len(raw) > first + limit else None, len(raw))


def _lines(raw: list[bytes]) -> Iterator[tuple[str, DiffLine | None]]:
    """Every line with the name of its file."""
    name, old, new = "", 0, 0
    inside = False
    for line in raw:
        if line.startswith(b"diff --git "):
            name, inside = _name(line), False
            yield name, _FILE
        elif hunk := _HUNK.match(line):
            inside, old, new = True, int(hunk[1]), int(hunk[2])
            yield name, DiffLine("hunk", _text(line))
        elif not inside:
            if line.startswith((b"rename to ", b"+++ ")) and not line.endswith(b"/dev/null"):
                name = _after(line, name)
            yield name, _note(line)
        elif line.startswith(b"+"):
            yield name, DiffLine("added", _text(line[1:]), None, new)
            new += 1
        elif line.startswith(b"-"):
            yield name, DiffLine("removed", _text(line[1:]), old, None)
            old += 1
        elif line.startswith(b" ") or not line:
            yield name, DiffLine("same", _text(line[1:]), old, new)
            old, new = old + 1, new + 1
        else:  # such as: \ No newline at end of file
            yield name, DiffLine("hunk", _text(line))


def _note(line: bytes) -> DiffLine | None:
    if line.startswith((b"index ", b"--- ", b"+++ ", b"similarity index")):
        return None
    return DiffLine("note", _text(line))


def _name(line: bytes) -> str:
    """The name in `diff --git a/x b/x`, which are the same but for a rename, which says so itself."""
    rest = line.removeprefix(b"diff --git ")
    half = rest[: len(rest) // 2]
    return _text(_unprefixed(half, b"a/"))


def _after(line: bytes, before: str) -> str:
    rest = line.partition(b" ")[2] if line.startswith(b"+++ ") else line.removeprefix(b"rename to ")
    rest = rest.removesuffix(b"\t")
    return _text(_unprefixed(rest, b"b/") if line.startswith(b"+++ ") else rest) or before


def _unprefixed(name: bytes, prefix: bytes) -> bytes:
    if name.startswith(b'"'):  # git quotes what is unusual
        return name.strip(b'"').removeprefix(prefix)
    return name.removeprefix(prefix)


def _text(line: bytes) -> str:
    text = line[: MAX_LINE * 4].decode("utf-8", "surrogateescape")
    return text if len(text) <= MAX_LINE and len(line) <= MAX_LINE * 4 else text[:MAX_LINE] + " […]"
