"""Foreign text on its way to a terminal: whatever it holds, it is shown and does nothing.

Repository text, file names, commands and a worker's words may carry escape sequences, carriage returns,
marks that turn the direction of writing, or bytes that are no text. They become visible escapes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click


def one_line(text: str) -> str:
    """On one line: white space becomes single spaces, what cannot be printed visible escapes."""
    return _visible(" ".join(text.split()), lambda char: False)


def many_lines(text: str) -> str:
    """Line breaks and tabs stay; everything else that cannot be printed becomes a visible escape."""
    return _visible(text, lambda char: char in "\n\t")


def echo_json(value: Any) -> None:
    """Print one line of JSON. Beyond ASCII all is escaped, so that a terminal may show it as well."""
    click.echo(json.dumps(value))


def _visible(text: str, stays: Callable[[str], bool]) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or stays(char) else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, as Python holds it
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
