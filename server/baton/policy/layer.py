"""One layer of the policy: a TOML file, read with every way it can be wrong said in one line."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from baton.contract.errors import InvalidInput

PERSON_LIMIT = 1024 * 1024
PROJECT_LIMIT = 64 * 1024
"""Bytes a layer's file may have; a project's is repository text and gets less."""

PERSON_FILE = Path("baton") / "policy.toml"
"""Below the Codex home."""
PROJECT_FILE = Path(".codex") / "baton.toml"
"""Below the workspace."""

_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class LayerName(StrEnum):
    """Who a value comes from, weakest word first."""

    SHIPPED = "shipped"
    PERSON = "person"
    PROJECT = "project"
    RECORDED = "recorded"
    """What a run was admitted with."""


@dataclass(frozen=True)
class Origin:
    """The file that a value comes from."""

    layer: LayerName
    file: Path


@dataclass(frozen=True)
class Layer:
    """A layer's file as parsed, not validated."""

    origin: Origin
    data: dict[str, Any]


def read_own_layer(name: LayerName, file: Path) -> Layer | None:
    """The shipped file or the person's; None when there is none. Links are followed: it is their own file.

    Raises `InvalidInput` for anything that is there and cannot be used.
    """
    content = read_own_content(file)
    return None if content is None else own_layer(name, file, content)


def read_own_content(file: Path) -> bytes | None:
    """The bytes of such a file, as `read_own_layer` reads it; None when there is none."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        if file.is_symlink():
            raise InvalidInput(f"{file}: a link that leads nowhere") from None
        return None
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from None
    return _content(file, descriptor, PERSON_LIMIT)


def own_layer(name: LayerName, file: Path, content: bytes) -> Layer:
    """The layer that such a file is with this content. Raises `InvalidInput`."""
    _check_size(file, content, PERSON_LIMIT)
    return Layer(Origin(name, file), _parsed(file, content))


def read_project_layer(project: Path, relative: Path = PROJECT_FILE) -> Layer | None:
    """The file of a project (an absolute folder); None when there is none. It never leads out of the project.

    Links inside the project are followed, others refused with `InvalidInput`, as is all that cannot be read.
    """
    file = project / relative
    try:
        if not project.is_dir():
            raise InvalidInput(f"{project}: no such folder")
        if not _is_there(file):
            return None
        root, real = project.resolve(), file.resolve(strict=True)
        if not real.is_relative_to(root):
            raise InvalidInput(f"{file}: leads out of the project; put the file itself there")
        descriptor = _open_below(root, real.relative_to(root))
    except FileNotFoundError:
        raise InvalidInput(f"{file}: a link that leads nowhere") from None
    except (OSError, RuntimeError) as error:
        # Python before 3.13 reports a circle of links as RuntimeError.
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"{file}: cannot be read: {reason}") from None
    content = _content(file, descriptor, PROJECT_LIMIT)
    return Layer(Origin(LayerName.PROJECT, file), _parsed(file, content))


def _is_there(file: Path) -> bool:
    """Unlike `os.path.lexists`, raises where it may not look instead of answering no."""
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _open_below(root: Path, relative: Path) -> int:
    """Open step by step without following links, so that one swapped in after the look-up leads nowhere."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    folder = os.open(root, flags | os.O_DIRECTORY)
    try:
        for part in relative.parts[:-1]:
            inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(relative.name, flags, dir_fd=folder)
    finally:
        os.close(folder)


def _content(file: Path, descriptor: int, limit: int) -> bytes:
    """What the descriptor leads to; it is closed."""
    try:
        # Before opening it as a stream, which refuses a folder in words of its own.
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidInput(f"{file}: not a regular file")
        with open(descriptor, "rb", closefd=False) as stream:
            content = stream.read(limit + 1)
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    _check_size(file, content, limit)
    return content


def _check_size(file: Path, content: bytes, limit: int) -> None:
    if len(content) > limit:
        raise InvalidInput(f"{file}: larger than the {limit // 1024} KiB that such a file may have")


def _parsed(file: Path, content: bytes) -> dict[str, Any]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(content, error.start)
        raise InvalidInput(f"{file}: line {line}, column {column}: not UTF-8") from None
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InvalidInput(f"{file}: nested too deeply") from None
    except ValueError as error:
        message = str(error)
        position = _POSITION.search(message)
        line, column = _place(content, len(content))
        if position and position[1]:
            line, column = int(position[1]), int(position[2])
        raise InvalidInput(
            f"{file}: line {line}, column {column}: {_POSITION.sub('', message)}; fix the TOML"
        ) from None


def _place(content: bytes, offset: int) -> tuple[int, int]:
    before = content[:offset]
    return before.count(b"\n") + 1, offset - (before.rfind(b"\n") + 1) + 1
