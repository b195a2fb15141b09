"""How a fault of a policy file reads: one line with the file, the key and what is expected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from baton.contract.errors import InvalidInput
from baton.contract.nearest import did_you_mean, nearest
from baton.policy.model import Policy
from baton.policy.narrowing import shown

KeyPath = tuple[str, ...]

_MOST = 5

_WORDING = (
    ("Input should be ", "expected "),
    ("a valid tuple", "a list"),
    ("a valid integer", "a whole number"),
    ("a valid ", "a "),
)
"""Pydantic's words, and those of a person who writes TOML."""


class PolicyRefused(InvalidInput):
    """Raised for a policy with faults. The message tells the first few, `lines` all of them, one each."""

    def __init__(self, message: str, lines: Iterable[str]) -> None:
        super().__init__(message)
        self.lines = tuple(lines)


def refusal(faults: Iterable[tuple[Path, str]]) -> PolicyRefused:
    """The error for faults given as file and text; a file is named once, and only the first few are told."""
    told = list(dict.fromkeys(faults))
    by_file: dict[Path, list[str]] = {}
    for file, text in told[:_MOST]:
        by_file.setdefault(file, []).append(text)
    parts = [f"{file}: " + "; ".join(texts) for file, texts in by_file.items()]
    if len(told) > _MOST:
        parts.append(f"and {len(told) - _MOST} more")
    return PolicyRefused("; ".join(parts), (f"{file}: {text}" for file, text in told))


def fault_path(fault: ErrorDetails) -> KeyPath:
    """The key that a validation fault is about, without positions inside a list."""
    # "[key]" is pydantic's mark for the name of an entry itself.
    return tuple(part for part in fault["loc"] if isinstance(part, str) and part != "[key]")


def describe(fault: ErrorDetails, siblings: Iterable[str]) -> str:
    """The text for a validation fault; `siblings` are the entries beside the one it is in."""
    path = fault_path(fault)
    where = shown_key(path) + "".join(f"[{part}]" for part in fault["loc"] if isinstance(part, int))
    got = shown(fault["input"])
    match fault["type"]:
        case "extra_forbidden":
            known = _names_at(path[:-1])
            return f"{where}: unknown key; " + did_you_mean(path[-1], known)
        case "missing":
            hint = nearest(path[-2], siblings) if len(path) > 2 else None
            entry = shown_key((*path[:-2], hint)) if hint else ""
            meant = f" (a new entry needs all its keys; did you mean {entry}?)" if hint else ""
            return f"{where}: required, but missing{meant}"
        case "model_type" | "dict_type":
            return f"{where}: expected a table, got {got}"
        case "string_pattern_mismatch":
            pattern = (fault.get("ctx") or {}).get("pattern")
            return f"{where}: expected text of the form {pattern}, got {got}"
    text = fault["msg"].removeprefix("Value error, ")
    for before, after in _WORDING:
        text = text.replace(before, after)
    # Pydantic names what a word may be as quoted text.
    words = re.findall(r"'([^']*)'", str((fault.get("ctx") or {}).get("expected", "")))
    hint = nearest(fault["input"], words) if isinstance(fault["input"], str) else None
    meant = f"; did you mean {hint!r}?" if hint else ""
    return f"{where}: {text[:1].lower()}{text[1:]}, got {got}{meant}"


def shown_key(path: KeyPath) -> str:
    """A key as a person looks for it in the file."""
    return ".".join(path) if path else "the file"


def _names_at(path: KeyPath) -> list[str]:
    """The keys that the table at `path` may have."""
    annotation: Any = Policy
    for key in path:
        if _is_model(annotation):
            annotation = annotation.model_fields[key].annotation
        else:
            # A table of entries, such as `roles`: whatever the entry's name, its model is the same.
            annotation = get_args(annotation)[1]
    return list(annotation.model_fields) if _is_model(annotation) else []


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def entries_of(data: Mapping[str, Any], path: KeyPath) -> list[str]:
    """Names beside the entry that `path` leads into: for `roles.x.tier` the other roles."""
    table: object = data
    for key in path[:-2]:
        table = table.get(key) if isinstance(table, dict) else None
    return [name for name in table if name != path[-2]] if isinstance(table, dict) and len(path) > 1 else []
