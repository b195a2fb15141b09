"""The tone of a word of the record: what colour goes with it. The word itself is always shown."""

from __future__ import annotations

GOOD, ACTIVE, WARN, BAD, QUIET = "good", "active", "warn", "bad", "quiet"

_TONES = {
    GOOD: (
        "verified",
        "done",
        "applied",
        "passed",
        "PASS",
        "prevented",
        "confirmed",
        "succeeded",
        "answered",
        *("finalised", "fixed", "completed"),
    ),
    ACTIVE: ("running", "working", "verifying", "integrating", "asking"),
    WARN: (
        *("held", "unverified", "no_change", "blocked", "BLOCKED", "interrupted", "skipped", "conflict"),
        *("detected", "missing", "not_on_tree", "moved", "stopped", "partly"),
        *("awaiting_synthesis", "important", "accepted_risk", "needs_attention"),
    ),
    BAD: ("failed", "FAILED", "timed_out", "limit", "refused", "not_found", "critical"),
}

_TONE_OF = {word: tone for tone, words in _TONES.items() for word in words}


def tone(word: str) -> str:
    """`good`, `active`, `warn`, `bad` or, for all other words, `quiet`."""
    return _TONE_OF.get(word, QUIET)


def spoken(word: str) -> str:
    """The word as people write it."""
    return word.replace("_", " ")
