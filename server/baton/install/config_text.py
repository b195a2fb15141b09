"""config.toml as text: what must stay as it was (mark, line endings, last line end), and what it says."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.contract.errors import InvalidInput

_MARK = b"\xef\xbb\xbf"
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True)
class ConfigText:
    """A config.toml that could be read."""

    text: str
    """Without the byte-order mark."""
    marked: bool
    data: dict[str, Any]

    @property
    def line_end(self) -> str:
        """The line end for text that is added."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def encoded(self) -> bytes:
        return (_MARK if self.marked else b"") + self.text.encode()


def read_text(content: bytes, file: Path) -> ConfigText:
    """Read a config.toml's bytes. Raises `InvalidInput` with file, line and column when it is not valid."""
    marked = content.startswith(_MARK)
    body = content.removeprefix(_MARK)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        line, column = _place(body, error.start)
        raise _fault(file, line, column, "not UTF-8") from None
    return ConfigText(text, marked, _parsed(text, file))


def with_text(old: ConfigText, text: str, file: Path) -> ConfigText:
    """The same file with another text. Raises `InvalidInput` as `read_text` does."""
    return ConfigText(text, old.marked, _parsed(text, file))


def _parsed(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InvalidInput(f"{file}: nested too deeply; nothing was changed") from None
    except ValueError as error:
        message = str(error)
        position = _POSITION.search(message)
        line, column = _place(text.encode(), len(text.encode()))
        if position and position[1]:
            line, column = int(position[1]), int(position[2])
        raise _fault(file, line, column, _POSITION.sub("", message)) from None


def _fault(file: Path, line: int, column: int, what: str) -> InvalidInput:
    return InvalidInput(f"{file}: line {line}, column {column}: {what}; fix it first, nothing was changed")


def _place(content: bytes, offset: int) -> tuple[int, int]:
    before = content[:offset]
    return before.count(b"\n") + 1, offset - (before.rfind(b"\n") + 1) + 1
