"""Foreign text as HTML: escaped, isolated from the direction of what is around it, its escapes told apart."""

from __future__ import annotations

import unicodedata

from markupsafe import Markup, escape

from baton.contract.visible import LINES, escaped


def marked(text: str, stays: str = LINES) -> Markup:
    """As HTML: isolated from the direction of the text around it, every escape told apart from plain text."""
    return Markup('<bdi class="foreign">{}</bdi>').format(_marked(text, stays))


def marked_words(text: str) -> Markup:
    """`marked` on one line: white space becomes single spaces."""
    return marked(" ".join(text.split()), "")


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
