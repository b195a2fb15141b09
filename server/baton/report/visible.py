"""Foreign text on its way to a page: whatever it holds, it is shown and does nothing.

What cannot be printed (control characters, marks that turn the direction of writing, bytes that are no text)
becomes a visible escape. Escaping for HTML comes on top of it.
"""

from __future__ import annotations

import unicodedata

from markupsafe import Markup, escape

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


def marked(text: str, stays: str = LINES) -> Markup:
    """As HTML: isolated from the direction of the text around it, every escape told apart from plain text."""
    return Markup('<bdi class="foreign">{}</bdi>').format(_marked(text, stays))


def marked_words(text: str) -> Markup:
    """`marked` on one line: white space becomes single spaces."""
    return marked(" ".join(text.split()), "")


def escaped(char: str) -> str:
    """The escape of one character."""
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, as Python holds it
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _marked(text: str, stays: str) -> Markup:
    if text.isprintable():
        return escape(text)
    parts: list[Markup] = []
    plain: list[str] = []
    for char in text:
        if char.isprintable() or char in stays:
            plain.append(char)
            continue
        parts.append(escape("".join(plain)))
        plain.clear()
        parts.append(_MARK.format(_named(char), escaped(char)))
    parts.append(escape("".join(plain)))
    return Markup("").join(parts)


_MARK = Markup('<span class="escape" title="{}">{}</span>')


def _named(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"byte 0x{code - 0xDC00:02X}, not UTF-8"
    return f"U+{code:04X} {unicodedata.name(char, '')}".strip()
