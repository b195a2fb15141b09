"""Changes single keys in the person's own policy file; everything else in it stays as it is."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable, Table

from baton.contract.errors import InvalidInput, StateUnavailable, WrongState
from baton.policy.faults import KeyPath, shown_key
from baton.policy.layer import PERSON_FILE, read_own_content
from baton.policy.load import LayeredPolicy, with_person_content

_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class PersonPolicy:
    """The person's file as it was read, and the policy that is in force by it."""

    file: Path
    content: bytes | None
    """None: there is no file."""
    layered: LayeredPolicy

    @property
    def fingerprint(self) -> str:
        """Another one for every other content and every other policy in force."""
        told = hashlib.sha256(self.layered.policy.model_dump_json().encode())
        told.update(b"no file" if self.content is None else b"file" + self.content)
        return told.hexdigest()

    @property
    def backup(self) -> Path:
        """Where the content before the last change is kept."""
        return self.file.with_name(self.file.name + ".bak")


def read_person(codex_home: Path) -> PersonPolicy:
    """Raises `InvalidInput` for a file that cannot be read, and for any fault in it."""
    file = codex_home / PERSON_FILE
    content = read_own_content(file)
    return PersonPolicy(file, content, with_person_content(content, file))


def write_keys(
    read: PersonPolicy, wanted: Mapping[KeyPath, Any], *, dry_run: bool = False
) -> tuple[str, ...]:
    """Have the file say these values; the keys that it said otherwise, each as it stands there now.

    The new text is loaded as a policy before it replaces the file, in one step, with the file's mode kept and
    links followed; what it replaces is kept as `read.backup`. Raises `PolicyRefused` when the values make no
    policy, `InvalidInput` for a file that cannot be edited safely, `WrongState` when it is no longer what was
    read, and `StateUnavailable` when it cannot be written. Nothing is changed then.
    """
    content, changes = _edited(read.content or b"", wanted, read.file)
    with_person_content(content, read.file)
    if changes and not dry_run:
        _replace(read, content)
    return changes


def line_ends(old: str, text: str) -> str:
    """tomlkit writes what it adds with line feeds; a file of carriage returns stays one."""
    if "\r\n" in old and not re.search(r"(?<!\r)\n", old):
        return re.sub(r"(?<!\r)\n", "\r\n", text)
    return text


def _edited(content: bytes, wanted: Mapping[KeyPath, Any], file: Path) -> tuple[bytes, tuple[str, ...]]:
    old = content.removeprefix(_MARK).decode("utf-8")
    try:
        document = tomlkit.parse(old)
        before = document.unwrap()
        expected: dict[str, Any] = copy.deepcopy(before)
        changes = []
        for path, value in wanted.items():
            if not _says(before, path, value):
                changes.append(f"{shown_key(path)} = {tomlkit.item(value).as_string()}")
                _put(document, path, value)
                _put(expected, path, value)
        text = line_ends(old, tomlkit.dumps(document))
        told = tomlkit.parse(text).unwrap()
    except (TOMLKitError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{file}: cannot be edited: {' '.join(str(error).split())}") from error
    if told != expected:
        lines = "; ".join(changes)
        raise InvalidInput(f"{file}: cannot be edited safely; write this into it yourself: {lines}")
    if not changes:
        return content, ()
    return (_MARK if content.startswith(_MARK) else b"") + text.encode("utf-8"), tuple(changes)


def _says(table: Any, path: KeyPath, value: Any) -> bool:
    for key in path:
        if not isinstance(table, Mapping) or key not in table:
            return False
        table = table[key]
    # 1 equals true, and is not the same.
    return type(table) is type(value) and bool(table == value)


def _put(table: Any, path: KeyPath, value: Any) -> None:
    for step, key in enumerate(path[:-1], start=1):
        if key not in table:
            table[key] = {} if type(table) is dict else _new_table(table, path, step)
        table = table[key]
    if isinstance(table, Table) and table.is_super_table():
        # It gets a header of its own, and would take the remark of the first one below it along.
        table.trivia.comment_ws = table.trivia.comment = ""
    table[path[-1]] = value


def _new_table(within: Any, path: KeyPath, depth: int) -> Any:
    """A table as a person would write it: headers down to an entry, such as `[consult.agents.codex]`."""
    if isinstance(within, InlineTable) or depth > 3:
        return tomlkit.inline_table()
    return tomlkit.table(is_super_table=depth < min(3, len(path) - 1))


def _replace(read: PersonPolicy, content: bytes) -> None:
    file = read.file
    try:
        real = Path(os.path.realpath(file))
        for folder in (file.parent, real.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(file.parent):
            if read_own_content(file) != read.content:
                raise WrongState(f"{file} has been changed meanwhile; look at it again, nothing was changed")
            mode = real.stat().st_mode & 0o7777 if real.exists() else 0o600
            if read.content is not None:
                _put_file(read.backup, read.content, mode)
            _put_file(real, content, mode)
    except OSError as error:
        raise StateUnavailable(f"{file} cannot be written: {error.strerror}; nothing was changed") from error


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other edit of ours goes on in this folder meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _put_file(file: Path, content: bytes, mode: int) -> None:
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".policy-")
    try:
        with os.fdopen(descriptor, "wb") as fresh:
            fresh.write(content)
            os.fchmod(fresh.fileno(), mode)
            fresh.flush()
            os.fsync(fresh.fileno())
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
