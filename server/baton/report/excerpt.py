"""A long text in part: its beginning and its end, with how much lies between."""

from __future__ import annotations

from dataclasses import dataclass

from baton.contract.errors import BatonError
from baton.ledger.artifacts import Artifacts

HEAD, TAIL = 4_000, 20_000
"""Bytes shown of the beginning and of the end, where what went wrong mostly is."""

MAX_PART_OF_LINE = 500


@dataclass(frozen=True)
class Excerpt:
    """A text as far as it is shown."""

    head: str
    tail: str = ""
    left_out: int = 0
    """Bytes between head and tail."""
    size: int = 0
    artifact: str | None = None
    missing: str | None = None
    """Why it cannot be shown; everything else is empty then."""


def excerpt(artifacts: Artifacts, artifact: str, head: int = HEAD, tail: int = TAIL) -> Excerpt:
    """An artifact in part; one that is gone or damaged says so."""
    try:
        size = artifacts.size(artifact)
        if size <= head + tail:
            return Excerpt(decoded(artifacts.read(artifact)), size=size, artifact=artifact)
        begin = decoded(artifacts.read(artifact, 0, head), cut_end=True)
        data = artifacts.read(artifact, size - tail, tail)
    except BatonError as error:
        return Excerpt("", artifact=artifact, missing=error.message)
    # The end begins with a whole line, where lines are not too long for that.
    data = data[data.find(b"\n", 0, MAX_PART_OF_LINE) + 1 :]
    return Excerpt(begin, decoded(data, cut_begin=True), size - head - len(data), size, artifact)


def shortened(text: str, limit: int) -> Excerpt:
    """The beginning of a text that is at hand, by characters."""
    if len(text) <= limit:
        return Excerpt(text, size=len(text))
    return Excerpt(text[:limit], left_out=len(text) - limit, size=len(text))


def decoded(data: bytes, *, cut_begin: bool = False, cut_end: bool = False) -> str:
    """Bytes as text, those that are no UTF-8 as Python holds them; a character cut at an edge is left out."""
    if cut_begin:
        skip = 0
        while skip < min(3, len(data)) and data[skip] & 0xC0 == 0x80:
            skip += 1
        data = data[skip:]
    if cut_end:
        for back in range(1, min(4, len(data)) + 1):
            lead = data[-back]
            if lead & 0xC0 == 0x80:
                continue
            if lead >= 0xC0 and back < (4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2):
                data = data[:-back]
            break
    return data.decode("utf-8", "surrogateescape")
