"""What somebody may have meant by a name that is none."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """The valid name closest to a misspelt one, or None when none is close."""
    by_folded = {_fold(candidate): candidate for candidate in valid}
    hits = difflib.get_close_matches(_fold(name), list(by_folded), n=1, cutoff=0.6)
    return by_folded[hits[0]] if hits else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """What to say of an unknown name: the nearest that is known; else `otherwise`, or all that are."""
    names = list(known)
    hint = nearest(name, names)
    if hint is not None:
        return f"did you mean {hint!r}?"
    return otherwise or "known: " + (", ".join(names) or "none")


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
