"""Reads JSON lines by the letter: what two readers could read in two ways is refused, line by line."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from baton.contract.errors import InvalidInput

MAX_LINE_BYTES = 8 * 1024 * 1024
"""Longer than any prompt a worker could hold with all of its characters escaped."""

MAX_DEPTH = 200
"""Of lists and objects inside each other; a schema that people write needs a tenth."""

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"


@dataclass(frozen=True)
class Line:
    """One line that is not blank: an object, or why it is none."""

    number: int
    """From 1; blank lines count."""
    row: dict[str, Any] | None
    fault: str | None = None


def read_lines(file: Path) -> Iterator[Line]:
    """The lines of a file, one at a time, separated by line feeds and by nothing else.

    A line of JSON's white space is passed over. A line is faulty that is not UTF-8, not exactly one JSON
    object, longer than `MAX_LINE_BYTES`, begins with a byte order mark, or holds a key twice, a lone
    surrogate or a number that is not finite. Raises `InvalidInput` when the file cannot be read.
    """
    with open_regular(file) as stream:
        number = 0
        try:
            while raw := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(raw) > MAX_LINE_BYTES:
                    _skip_rest(stream, raw)
                    limit = MAX_LINE_BYTES // (1024 * 1024)
                    yield Line(number, None, f"longer than {limit} MiB; put the text into a prompt_file")
                elif raw.strip(_BLANK):
                    yield _line(number, raw.removesuffix(b"\n"))
        except OSError as error:
            raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from None


def parse_object(raw: bytes) -> dict[str, Any]:
    """The one JSON object in `raw`. Raises ValueError with a few words on what is wrong."""
    if raw.startswith(_BOM):
        raise ValueError("begins with a byte order mark; save the file as UTF-8 without it")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from None
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_not_json, parse_float=_finite, parse_int=_whole
        )
        _check(value, 0)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}, column {error.colno}") from None
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    if not isinstance(value, dict):
        raise ValueError("must be one JSON object: {…}")
    return value


def open_regular(file: Path) -> BinaryIO:
    """Open a regular file for reading. Raises `InvalidInput`, one line, for anything else."""
    try:
        # Without waiting, should somebody have put a pipe there.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        raise InvalidInput(f"{str(file)!a}: cannot be a path") from None
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InvalidInput(f"{file}: not a regular file")
    return os.fdopen(descriptor, "rb")


def _line(number: int, raw: bytes) -> Line:
    try:
        return Line(number, parse_object(raw))
    except ValueError as fault:
        return Line(number, None, str(fault))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {_shown(twice)} is given twice")
    return found


def _not_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {_shown(text)} is too large")
    return value


def _whole(text: str) -> int:
    if len(text) > 40:
        raise ValueError(f"the number {_shown(text)} is too large")
    return int(text)


def _check(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, list):
        for entry in value:
            _check(entry, depth + 1)
    elif isinstance(value, dict):
        for key, entry in value.items():
            _check_text(key)
            _check(entry, depth + 1)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise ValueError(f"holds a lone surrogate (\\u{code:04x}), which is no character") from None


def _shown(text: str) -> str:
    shown = ascii(text)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _skip_rest(stream: BinaryIO, raw: bytes) -> None:
    while raw and not raw.endswith(b"\n"):
        raw = stream.readline(MAX_LINE_BYTES)
