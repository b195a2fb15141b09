"""The parts of a row that need a closer look: its prompt file and its schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from baton.contract import json_schema
from baton.contract.errors import InvalidInput
from baton.contract.task import MAX_TEXT, Text
from baton.pool.strict_jsonl import open_regular

_TEXT: TypeAdapter[str] = TypeAdapter(Text)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def read_prompt_file(named: str, job_file: Path, project: Path) -> str:
    """The text of a prompt file, which lies beside or below the job file, or in the project.

    A job file may be written by a model; it must not be able to send any file of the person's to a service.
    Raises ValueError with a few words on what is wrong.
    """
    beside = job_file.resolve().parent
    try:
        real = (beside / named).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise ValueError(f"no such file: {named}") from None
    if not any(real.is_relative_to(folder) for folder in (beside, project)):
        raise ValueError(f"{named} lies neither below the job file's folder nor in the project")
    try:
        with open_regular(real) as stream:
            raw = stream.read(4 * MAX_TEXT + 1)
    except InvalidInput as error:
        raise ValueError(error.message) from None
    except OSError as error:
        raise ValueError(f"{named} cannot be read: {error.strerror}") from None
    if raw.startswith(b"\xef\xbb\xbf"):
        raise ValueError(f"{named} begins with a byte order mark; save it as UTF-8 without it")
    try:
        return _TEXT.validate_python(raw.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"{named} is not UTF-8: byte {error.start + 1}") from None
    except ValidationError as error:
        text = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise ValueError(f"{named}: {text[:1].lower()}{text[1:]}") from None


def schema_fault(schema: dict[str, Any]) -> str | None:
    """Why a JSON schema cannot be used, or None. References may only point into the schema itself."""
    for reference in _references(schema):
        if not reference.startswith("#"):
            return f"the reference {reference!r} leads out of the schema; write it out, or use $defs"
    why = json_schema.schema_fault(schema)
    return None if why is None else f"no valid JSON schema: {why}"


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in _REFERENCES and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)
