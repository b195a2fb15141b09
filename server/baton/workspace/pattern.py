"""One scope pattern: gitignore's language, parsed once for matching, planning and overlap.

The parse is our own because three readers share it, a sandbox plan and an automaton besides the matcher, and
a boundary must not be read in two ways. Git itself is the oracle of its tests. Names are bytes, as in git: a
`?` or a bracket stands for one byte.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from baton.contract.errors import InvalidInput
from baton.contract.tree import show_path
from baton.workspace.glob import (
    ANY_NAME,
    Segment,
    is_byte,
    literal,
    read_segment,
    segment_expression,
    segment_matches,
)

MAX_PATTERN_BYTES = 1000
"""Longer than any path prefix that a person would name; keeps matching linear in practice."""


@dataclass(frozen=True)
class Pattern:
    """A parsed pattern. It matches a file when it matches the file's path or one of its directories."""

    text: str
    """As the person wrote it."""
    elements: tuple[Segment | None, ...]
    """The names of a path in order; None is any number of names, none included. The last element is None."""
    exact: bytes | None
    """The single path that it names, when it holds no wildcard and is anchored."""
    bare_name: bytes | None
    """The name that it covers at any depth, when that is all it says."""
    directory_only: bool
    """It ended with a slash: names a directory, never a file."""
    literal_prefix: bytes
    """The leading names without wildcards, joined by slashes; empty when the first one has any."""
    literal_names: frozenset[bytes]
    """Every name in it that holds no wildcard."""

    @cached_property
    def _expression(self) -> re.Pattern[bytes]:
        return re.compile(_expression(self.elements), re.DOTALL)

    def matches(self, path: bytes) -> bool:
        """Whether the file at `path` (relative to the workspace, no trailing slash) is covered."""
        return self._expression.match(path) is not None

    @property
    def looks_like_file(self) -> bool:
        """Whether its last name has an extension as files do: `*.py`, but not `src` or `v1.*`."""
        last = self.elements[-2]
        if self.directory_only or last is None or last == ANY_NAME:
            return False
        spelled = "".join(chr(item.bit_length() - 1) if is_byte(item) else "*" for item in last)
        return re.search(r"[^.]\.[A-Za-z0-9]{1,8}\Z", spelled) is not None

    def start(self) -> frozenset[int]:
        """The state before the first name of a path: indices of elements that may come next."""
        return self._closure({0})

    def step(self, states: frozenset[int], name: bytes) -> frozenset[int]:
        """The state after one more name; empty when no path that goes on from here can match."""
        after: set[int] = set()
        for index in states:
            element = self.elements[index]
            if element is None:
                after.add(index)
            elif segment_matches(element, name):
                after.add(index + 1)
        return self._closure(after)

    def state_at(self, path: bytes) -> frozenset[int]:
        """The state after every name of `path`; b"" is the workspace itself."""
        states = self.start()
        for name in path.split(b"/") if path else ():
            states = self.step(states, name)
        return states

    def covers_file(self, states: frozenset[int]) -> bool:
        """Whether the path read so far is covered as a file."""
        return len(self.elements) - 1 in states

    def covers_directory(self, states: frozenset[int]) -> bool:
        """Whether everything below the path read so far is covered."""
        last = len(self.elements) - 1
        return last in states or (last - 1 in states and self.elements[last - 1] == ANY_NAME)

    def _closure(self, states: set[int]) -> frozenset[int]:
        closed = set(states)
        for index in sorted(states):
            while index < len(self.elements) - 1 and self.elements[index] is None:
                index += 1
                closed.add(index)
        return frozenset(closed)


def read_pattern(text: str, role: str, *, narrow: bool = False) -> Pattern:
    """Parse one pattern; `role` is how the task calls its list, for the message.

    `narrow` reads a plain name (`src`, `src/`, `README.md`) as that path at the top of the workspace; without
    it a plain name means any depth, as in gitignore. Raises `InvalidInput` with one line naming the pattern,
    why it is refused and what to write instead.
    """
    try:
        return _parse(text, narrow)
    except ValueError as fault:
        raise InvalidInput(f"{role}: pattern {_quoted(text)} {fault}") from None


def _parse(text: str, narrow: bool) -> Pattern:
    _refuse_unreadable(text)
    body = text.rstrip(" ")
    if body.endswith("\\") and body != text:
        body += " "  # gitignore: a trailing space stays when it is escaped
    if not body:
        raise ValueError("is empty; name a file or directory, or ** for the whole workspace")
    anchored = body == "." or body.startswith("./")
    body = body[2:] if anchored else body
    directory_only = body.endswith("/")
    body = body[:-1] if directory_only else body
    if not body and anchored:
        body, directory_only = "**", False
    _refuse_foreign(text, body)
    spelled = body.encode().split(b"/")
    names = _without_repeats([None if name == b"**" else read_segment(name) for name in spelled])
    literals = [literal(name) for name in names]
    anchored = anchored or (narrow and None not in literals)
    if len(names) == 1 and not anchored:
        names = _without_repeats([None, *names])
    fixed = anchored or len(literals) > 1
    exact = b"/".join(name for name in literals if name is not None)
    prefix: list[bytes] = []
    for name in literals if fixed else ():
        if name is None:
            break
        prefix.append(name)
    return Pattern(
        text=text,
        elements=tuple(_with_tail(names, directory_only)),
        exact=exact if fixed and None not in literals else None,
        bare_name=literal(names[1]) if len(names) == 2 and names[0] is None else None,
        directory_only=directory_only,
        literal_prefix=b"/".join(prefix),
        literal_names=frozenset(name for name in literals if name is not None),
    )


def _with_tail(names: Sequence[Segment | None], directory_only: bool) -> list[Segment | None]:
    """Everything below what is named is covered; a trailing `**` or slash asks for at least one name more."""
    elements = list(names)
    if elements[-1] is None:
        elements[-1] = ANY_NAME
    if directory_only:
        elements.append(ANY_NAME)
    return [*elements, None]


def _without_repeats(names: Sequence[Segment | None]) -> list[Segment | None]:
    return [name for index, name in enumerate(names) if name is not None or index == 0 or names[index - 1]]


def _refuse_unreadable(text: str) -> None:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_PATTERN_BYTES:
        raise ValueError(f"is longer than {MAX_PATTERN_BYTES} bytes")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("holds a lone surrogate; write ? for each byte of a name that is not UTF-8")
    if any(char < " " or char == "\x7f" for char in text):
        raise ValueError("holds a control character; write ? for it")


def _refuse_foreign(text: str, body: str) -> None:
    """Refuse what gitignore reads as something else than a person who writes it means."""
    if text.startswith("!"):
        raise ValueError("is a negation, which could switch the scope off; list what may not change instead")
    if text.startswith("#"):
        raise ValueError("is a comment in gitignore; write \\# for a name that starts with #")
    if body.startswith("/") or text.startswith("/"):
        raise ValueError("is absolute; write it relative to the workspace, ./name for its top level")
    if re.match(r"[A-Za-z]:[\\/]", body):
        raise ValueError("is absolute; write it relative to the workspace")
    if body == "~" or body.startswith("~/"):
        raise ValueError("names a home folder; write it relative to the workspace")
    names = body.split("/")
    if ".." in names:
        raise ValueError("leaves the workspace by ..")
    if "." in names:
        raise ValueError("has . as a name in the middle; leave it out")
    if "" in names:
        raise ValueError("has an empty name between slashes")
    if any("**" in name and name != "**" for name in names):
        raise ValueError("has ** within a name, which git reads in two ways; write * there, or **/ before it")
    if re.search(r"\\[A-Za-z0-9_.]", body):
        raise ValueError("has a backslash before an ordinary character; names are separated by /")
    if re.search(r"(?<!\\)\{[^{}/]*,[^{}]*\}", body):
        raise ValueError("has {a,b}, which gitignore takes literally; write one pattern for each")


def _expression(elements: Sequence[Segment | None]) -> bytes:
    """A regular expression whose wildcards are settled by their first fit: no backtracking."""
    parts = [b""]
    for element in elements[:-1]:
        if element is None:
            parts.append(b"")
        else:
            parts[-1] += segment_expression(element) + b"/"
    *middle, last = parts
    whole = b""
    for index, part in enumerate(middle):
        whole += part if index == 0 else b"(?>(?:[^/]++/)*?" + part + b")"
    # The last name may end the path or be a directory above it.
    last = last[:-1] + rb"(?:/|\Z)"
    return whole + (b"(?:[^/]++/)*?" + last if middle else last)


def _quoted(text: str) -> str:
    shown = show_path(text.encode("utf-8", "surrogatepass")).replace("\\\\", "\\")
    return f"'{shown if len(shown) <= 80 else shown[:77] + '...'}'"
