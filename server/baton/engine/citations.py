"""Checks what an exploration cites against the files: a pure function over a reader of file contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from baton.contract.findings import CheckedFinding, CitationStatus, Finding

ReadFile = Callable[[bytes], bytes | None]
"""The content of the file at a path relative to the workspace; None when there is no such file."""

MIN_LETTERS = 3
"""Letters and digits that a quote must have to prove anything: a closing brace is everywhere."""


def check_findings(
    findings: Sequence[Finding], read: ReadFile, roots: Sequence[str] = ()
) -> list[CheckedFinding]:
    """Each finding with what its file says of it, in the order given.

    A quote is `confirmed` when its words stand at the cited line, `moved` when they stand elsewhere in that
    file, else `not_found`. Runs of white space count as one space; a quote of several lines must be several
    lines there. `roots` are absolute folders for which the workspace stands, such as the worker's own.
    """
    texts: dict[bytes, list[str] | None] = {}

    def lines_of(path: bytes) -> list[str] | None:
        if path not in texts:
            content = read(path)
            texts[path] = None if content is None else _lines(content)
        return texts[path]

    return [_check(finding, lines_of, roots) for finding in findings]


def cited_path(file: str, roots: Sequence[str] = ()) -> bytes | None:
    """The path that a citation means, relative to the workspace; None for one that leads elsewhere."""
    for root in roots:
        if file.startswith(f"{root}/"):
            file = file[len(root) + 1 :]
            break
    names = [name for name in file.split("/") if name != "."]
    if file.startswith("/") or not names or "" in names or ".." in names or "\0" in file:
        return None
    return "/".join(names).encode("utf-8", "surrogateescape")


def _check(
    finding: Finding, lines_of: Callable[[bytes], list[str] | None], roots: Sequence[str]
) -> CheckedFinding:
    def missing(detail: str) -> CheckedFinding:
        known = finding.model_dump()
        return CheckedFinding(**known, status=CitationStatus.NOT_FOUND, detail=detail)

    path = cited_path(finding.file, roots)
    if path is None:
        return missing("not a path inside the workspace")
    quote = [line for line in map(_plain, finding.quote.split("\n")) if line]
    if sum(char.isalnum() for line in quote for char in line) < MIN_LETTERS:
        return missing("the quote is too short to prove anything")
    lines = lines_of(path)
    if lines is None:
        return missing("no such file")
    places = _places(lines, quote)
    if not places:
        return missing("the quote is not in the file")
    shown = finding.model_copy(update={"file": path.decode("utf-8", "surrogateescape")}).model_dump()
    if finding.line in places:
        return CheckedFinding(**shown, status=CitationStatus.CONFIRMED)
    nearest = min(places, key=lambda line: (abs(line - finding.line), line))
    return CheckedFinding(**shown, status=CitationStatus.MOVED, found_line=nearest)


def _places(lines: Sequence[str], quote: Sequence[str]) -> set[int]:
    """Lines, from 1, at which the quote stands; empty lines between its own do not count."""
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line]
    found = set()
    for start in range(len(numbered) - len(quote) + 1):
        here = [line for _, line in numbered[start : start + len(quote)]]
        if _stands(here, quote):
            found.add(numbered[start][0])
    return found


def _stands(lines: Sequence[str], quote: Sequence[str]) -> bool:
    """Whether the quote's lines are these: the first may begin and the last may end within its line."""
    if len(quote) == 1:
        return quote[0] in lines[0]
    inner = all(line == part for line, part in zip(lines[1:-1], quote[1:-1], strict=True))
    return inner and lines[0].endswith(quote[0]) and lines[-1].startswith(quote[-1])


def _lines(content: bytes) -> list[str]:
    return [_plain(line) for line in content.decode("utf-8", "replace").split("\n")]


def _plain(line: str) -> str:
    return " ".join(line.split())
