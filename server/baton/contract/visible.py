"""Foreign text on its way to a person: whatever it holds, it is shown and does nothing.

What cannot be printed (control characters, marks that turn the direction of writing, bytes that are no text)
becomes a visible escape.
"""

from __future__ import annotations

LINES = "\n\t"
"""What stays in text of several lines."""


def visible(text: str, stays: str = "") -> str:
    """The text with an escape (`\\x1b`, `\\u202e`) for everything that cannot be printed, but for `stays`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in stays else escaped(char) for char in text)


def one_line(text: str) -> str:
    """On one line: white space becomes single spaces, what cannot be printed visible escapes."""
    return visible(" ".join(text.split()))


def escaped(char: str) -> str:
    """The escape of one character."""
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, as Python holds it
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
