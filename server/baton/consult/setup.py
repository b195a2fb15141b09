"""Switches consultation on in the person's own policy file, and names a model for an agent that needs one."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from baton.contract.base import nearest
from baton.contract.errors import InvalidInput, StateUnavailable
from baton.policy.layer import PERSON_FILE
from baton.policy.load import load_policy


@dataclass(frozen=True)
class SetUp:
    """What was done to the person's policy."""

    file: Path
    changes: tuple[str, ...]
    """Keys that have another value now, each as it stands in the file; empty when all was so before."""


def set_up(codex_home: Path, models: Mapping[str, str], *, dry_run: bool = False) -> SetUp:
    """Have the person's policy say `[consult] enabled = true`, and these models of agents; no more.

    Everything else in the file stays as it is, byte for byte where the format allows it. The new text is
    loaded as a policy before it replaces the file, in one step, with the file's mode kept and links followed.
    Raises `InvalidInput` for an agent that the policy does not have and for a file that cannot be edited
    safely, `StateUnavailable` when it cannot be written.
    """
    known = load_policy(codex_home, None).consult.agents
    for name in models:
        if name not in known:
            hint = nearest(name, known)
            advice = f"did you mean {hint!r}?" if hint else "agents: " + ", ".join(sorted(known))
            raise InvalidInput(f"no agent {name!r}; {advice}")
    file = codex_home / PERSON_FILE
    old = _read(file)
    wanted: dict[tuple[str, ...], Any] = {("consult", "enabled"): True}
    wanted |= {("consult", "agents", name, "model"): model for name, model in models.items()}
    text, changes = _edited(old, wanted, file)
    _check(text, file)
    if changes and not dry_run:
        _replace(file, text)
    return SetUp(file, changes)


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: not UTF-8") from error
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from error


def _edited(old: str, wanted: Mapping[tuple[str, ...], Any], file: Path) -> tuple[str, tuple[str, ...]]:
    try:
        document = tomlkit.parse(old)
        before = document.unwrap()
        expected: dict[str, Any] = copy.deepcopy(before)
        changes = []
        for path, value in wanted.items():
            if _at(before, path) != value:
                changes.append(f"{'.'.join(path)} = {tomlkit.item(value).as_string()}")
                _put(document, path, value)
                _put(expected, path, value)
        text = tomlkit.dumps(document)
        told = tomlkit.parse(text).unwrap()
    except (TOMLKitError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{file}: cannot be edited: {' '.join(str(error).split())}") from error
    if told != expected:
        lines = "; ".join(changes)
        raise InvalidInput(f"{file}: cannot be edited safely; write this into it yourself: {lines}")
    return text, tuple(changes)


def _at(table: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        table = table.get(key) if isinstance(table, Mapping) else None
    return table


def _put(table: Any, path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        if key not in table:
            table[key] = {} if type(table) is dict else tomlkit.table(is_super_table=key == "agents")
        table = table[key]
    table[path[-1]] = value


def _check(text: str, file: Path) -> None:
    """The new text is a policy. Raises `InvalidInput` as loading it would, with the file's own name."""
    with tempfile.TemporaryDirectory() as folder:
        tried = Path(folder) / PERSON_FILE
        tried.parent.mkdir()
        tried.write_text(text, encoding="utf-8")
        try:
            load_policy(Path(folder), None)
        except InvalidInput as error:
            raise InvalidInput(error.message.replace(str(tried), str(file))) from None


def _replace(file: Path, text: str) -> None:
    real = Path(os.path.realpath(file))
    try:
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
        descriptor, name = tempfile.mkstemp(dir=real.parent, prefix=".policy-")
        with os.fdopen(descriptor, "wb") as fresh:
            fresh.write(text.encode("utf-8"))
            os.fchmod(fresh.fileno(), mode)
            fresh.flush()
            os.fsync(fresh.fileno())
        Path(name).replace(real)
    except OSError as error:
        raise StateUnavailable(f"{file} cannot be written: {error.strerror}; nothing was changed") from error
