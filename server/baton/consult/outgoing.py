"""What may leave this machine: credentials are masked in prose, and looked for in everything else.

Code and patches are never rewritten: text that no longer says what it said is worse than none. Whoever sends
them refuses or asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from baton.consult.context_material import Piece
from baton.consult.secrets import mask, scan
from baton.contract.errors import NotAllowed

SHOWN = 8

_PATCH = re.compile(r"(?m)^(?:diff --git |@@ -\d|--- \S|\+\+\+ \S|index [0-9a-f]{7,}\.\.)")
_CODE_LINE = re.compile(
    r"^\s*(?:(?:def|class|import|from|return|if|for|while|const|let|var|function|func|fn|pub|public|private|export|"
    r"package|using|#include|async|await|try|else|elif|end|SELECT|INSERT|UPDATE|CREATE)\b.*[:;({)}=]?|.*[;{}]|.*\)\s*:?|"
    r"[\w.\[\]\"']+\s*(?:=|:=|\+=)\s*\S.*|[#/*]{1,2}.*|<[^>]+>.*)\s*$"
)


@dataclass(frozen=True)
class Sighting:
    """Where something that looks like a credential stands; what it says is not kept."""

    label: str
    line: int
    """From 1; 0 for the name itself."""
    what: str

    @property
    def place(self) -> str:
        return f"{self.label}{f':{self.line}' if self.line else ''} {self.what}"


@dataclass(frozen=True)
class Sightings:
    """What was seen in material."""

    secrets: tuple[Sighting, ...] = ()
    suspects: tuple[Sighting, ...] = ()
    """Random-looking lines: a guess that never blocks."""


def is_code(text: str) -> bool:
    """Whether changing a text would change what it does: a patch, or lines that are mostly code."""
    if _PATCH.search(text) or "```" in text:
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and sum(bool(_CODE_LINE.match(line)) for line in lines) * 2 >= len(lines)


def prose(text: str) -> tuple[str, list[str]]:
    """A text without its credentials, and what was masked."""
    masked = mask(text)
    return masked.text, [hit.what for hit in masked.hits]


def look_through(pieces: Iterable[Piece]) -> Sightings:
    """Where material that is sent as it is holds what looks like a credential."""
    secrets: list[Sighting] = []
    suspects: list[Sighting] = []
    for piece in pieces:
        # The label is sent as well. Where it holds one, it is not repeated.
        label = mask(piece.label)
        secrets += [Sighting(label.text, 0, f"{hit.what} in its name") for hit in label.hits]
        found = scan(piece.text)
        secrets += [Sighting(label.text, hit.line, hit.what) for hit in found.hits]
        suspects += [Sighting(label.text, hit.line, hit.what) for hit in found.suspects]
    return Sightings(tuple(secrets), tuple(suspects))


def cleaned(pieces: Sequence[Piece], *, prose_labels: frozenset[str]) -> tuple[list[Piece], list[str]]:
    """The pieces with credentials masked in those that are prose, and what was masked.

    Only what is named in `prose_labels` and does not look like code is ever changed.
    """
    clean, masked = [], []
    for piece in pieces:
        if piece.label in prose_labels and not is_code(piece.text):
            text, what = prose(piece.text)
            masked += what
            piece = Piece(piece.label, text)
        clean.append(piece)
    return clean, masked


def refuse_secrets(seen: Sequence[Sighting], how: str) -> None:
    """Raises `NotAllowed` when there are any, naming their places; `how` says what a caller can do."""
    if not seen:
        return
    places = ", ".join(sighting.place for sighting in seen[:SHOWN])
    more = f" and {len(seen) - SHOWN} more" if len(seen) > SHOWN else ""
    raise NotAllowed(
        f"the material holds what looks like credentials: {places}{more}; nothing was sent; {how}"
    )
