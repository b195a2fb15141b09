"""One name of a glob, as gitignore spells it: byte sets in order and runs of any bytes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeGuard

ByteSet = int
"""A set of byte values: bit n stands for byte n."""

Segment = tuple[ByteSet | None, ...]
"""One name: byte sets in order; None is `*`, any run of bytes."""

ANY_NAME: Segment = (None,)

NAME_BYTES: ByteSet = ((1 << 256) - 1) & ~(1 << ord("/")) & ~1


def segment_matches(segment: Segment, name: bytes) -> bool:
    """Whether one name without slashes is matched by one segment."""
    return _compiled(segment).fullmatch(name) is not None


def denial_glob(segment: Segment) -> str:
    """A glob that matches at least the same names, for a sandbox that reads globs by characters.

    What may stand for a byte beyond ASCII becomes `*`: such a sandbox counts characters, not bytes.
    """
    spelled = b"".join(b"*" if item is None else _denial_item(item) for item in segment)
    return re.sub(rb"\*+", b"*", spelled).decode("utf-8", "surrogateescape")


def is_byte(item: ByteSet | None) -> TypeGuard[ByteSet]:
    """Whether it stands for exactly one byte."""
    return item is not None and item.bit_count() == 1


def literal(segment: Segment | None) -> bytes | None:
    """The one name that a segment stands for; None when it has a wildcard."""
    if segment is None or not all(is_byte(item) for item in segment):
        return None
    return bytes(item.bit_length() - 1 for item in segment if is_byte(item))


def read_segment(name: bytes) -> Segment:
    """Parse one name of a pattern. Raises `ValueError` with the words that follow it in a message."""
    items: list[ByteSet | None] = []
    place = 0
    while place < len(name):
        byte = name[place]
        place += 1
        if byte == ord("*"):
            if not items or items[-1] is not None:
                items.append(None)
        elif byte == ord("?"):
            items.append(NAME_BYTES)
        elif byte == ord("["):
            allowed, place = _bracket(name, place)
            items.append(allowed)
        elif byte == ord("\\"):
            if place == len(name):
                raise ValueError("ends a name with a backslash; names are separated by /")
            items.append(1 << name[place])
            place += 1
        else:
            items.append(1 << byte)
    return tuple(items)


def segment_expression(segment: Segment) -> bytes:
    """The body of a regular expression for one name; each `*` but the last is settled by its first fit."""
    if segment == ANY_NAME:
        return b"[^/]+"
    runs: list[bytes] = [b""]
    for item in segment:
        if item is None:
            runs.append(b"")
        else:
            runs[-1] += _set_expression(item)
    head, *rest = runs
    if not rest:
        return head
    inner = b"".join(b"(?>[^/]*?" + run + b")" for run in rest[:-1])
    return head + inner + b"[^/]*" + rest[-1]


@lru_cache(maxsize=4096)
def _compiled(segment: Segment) -> re.Pattern[bytes]:
    return re.compile(segment_expression(segment), re.DOTALL)


def _set_expression(allowed: ByteSet) -> bytes:
    if allowed == NAME_BYTES:
        return b"[^/]"
    members = [byte for byte in range(256) if allowed >> byte & 1]
    if len(members) == 1:
        return re.escape(bytes(members))
    return b"[" + b"".join(b"\\x%02x" % byte for byte in members) + b"]"


def _denial_item(allowed: ByteSet) -> bytes:
    members = bytes(byte for byte in range(256) if allowed >> byte & 1)
    if len(members) == 1:
        return b"[" + members + b"]" if members in b"*?[{}\\" else members
    if allowed >> 128:
        return b"*"
    # A bracket of a caret, a dash or a closing bracket is read differently by different readers.
    return b"?" if set(members) & set(b"^!-]\\") else b"[" + members + b"]"


_CLASSES: dict[bytes, bytes] = {
    b"alnum": rb"[0-9A-Za-z]",
    b"alpha": rb"[A-Za-z]",
    b"blank": rb"[ \t]",
    b"cntrl": rb"[\x00-\x1f\x7f]",
    b"digit": rb"[0-9]",
    b"graph": rb"[!-~]",
    b"lower": rb"[a-z]",
    b"print": rb"[ -~]",
    b"punct": rb"[!-/:-@\[-`{-~]",
    b"space": rb"[ \t-\r]",
    b"upper": rb"[A-Z]",
    b"xdigit": rb"[0-9A-Fa-f]",
}


def _bracket(name: bytes, place: int) -> tuple[ByteSet, int]:
    """The set of a bracket whose `[` lies before `place`, and the place after its `]`."""
    negated = name[place : place + 1] in (b"!", b"^")
    place += negated
    allowed = 0
    first = True
    while first or name[place : place + 1] != b"]":
        first = False
        if name[place : place + 2] == b"[:":
            members, place = _class(name, place)
            allowed |= members
            continue
        low, place = _bracket_byte(name, place)
        high = low
        if name[place : place + 1] == b"-" and name[place + 1 : place + 2] not in (b"]", b""):
            high, place = _bracket_byte(name, place + 1)
        if high < low:
            raise ValueError("has a bracket range that runs backwards")
        allowed |= sum(1 << byte for byte in range(low, high + 1))
    allowed = (~allowed if negated else allowed) & NAME_BYTES
    if not allowed:
        raise ValueError("has a bracket that no name can match")
    return allowed, place + 1


def _class(name: bytes, place: int) -> tuple[ByteSet, int]:
    end = name.find(b":]", place)
    members = _CLASSES.get(name[place + 2 : end]) if end > 0 else None
    if members is None:
        raise ValueError("has an unknown character class; [:alpha:] and [:digit:] are known ones")
    return sum(1 << byte for byte in range(256) if re.fullmatch(members, bytes([byte]))), end + 2


def _bracket_byte(name: bytes, place: int) -> tuple[int, int]:
    if name[place : place + 1] == b"\\":
        place += 1
    if place >= len(name):
        raise ValueError("has a [ without its ]; write \\[ for the character")
    if name[place] >= 0x80:
        raise ValueError("has a bracket with a character beyond ASCII, which gitignore reads as single bytes")
    return name[place], place + 1
