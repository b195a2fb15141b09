"""The material that goes with a question: text as given, and files from folders that the person allowed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from baton.contract.consult import Material
from baton.contract.errors import InvalidInput, NotAllowed
from baton.process.there import is_folder
from baton.workspace.pathwalk import Tree

CONTEXT = "context"
"""The label of text that the caller gave."""

MayRead = Callable[[Path], bool]


@dataclass(frozen=True)
class Piece:
    """One piece of material under the label that the agent sees."""

    label: str
    text: str

    def record(self) -> Material:
        data = self.text.encode("utf-8", "replace")
        return Material(label=self.label, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def gather(
    context: str | None,
    paths: Sequence[str],
    *,
    workspace: Path | None,
    roots: Sequence[str],
    may_read: MayRead,
    most: int,
    keys: tuple[str, str, str] = ("consult.context_roots", "consult.max_context_bytes", "contextPaths"),
) -> list[Piece]:
    """The material of a question, at most `most` bytes.

    Paths are relative to the workspace, or absolute. A file must lie in one of the roots, links resolved; the
    label is its path below that root, so that nothing else of the machine's folders is told. `keys` are the
    policy's keys of both bounds, and the argument, as errors name them. Raises
    `NotAllowed` for what may not be sent, `InvalidInput` for what is no text or too much.
    """
    pieces = [Piece(CONTEXT, context)] if context else []
    room = most - sum(len(piece.text.encode("utf-8", "replace")) for piece in pieces)
    if room < 0:
        raise InvalidInput(f"context: larger than {most} bytes ({keys[1]})")
    allowed = allowed_roots(roots, workspace, keys[0]) if paths else []
    for path in paths:
        piece, size = _file(path, workspace, allowed, may_read, room, keys)
        room -= size
        pieces.append(piece)
    return pieces


def expanded(path: str) -> str:
    """With `~` for the home it stands for; as it is where it stands for none, which is then no such path."""
    return os.path.expanduser(path)  # noqa: PTH111


def allowed_roots(roots: Sequence[str], workspace: Path | None, key: str) -> list[Path]:
    """The folders of a policy's list that are there, links resolved; `.` is the workspace.

    Raises `InvalidInput`, naming the policy's `key`, for a relative one: nobody knows relative to what.
    """
    found = []
    for root in roots:
        path = workspace if root == "." else Path(expanded(root))
        if path is None:
            continue
        if not path.is_absolute():
            raise InvalidInput(f"{key}: {root!r} is neither absolute nor '.'")
        if is_folder(path):
            found.append(Path(os.path.realpath(path)))
    return found


def _file(
    path: str,
    workspace: Path | None,
    roots: Sequence[Path],
    may_read: MayRead,
    room: int,
    keys: tuple[str, str, str],
) -> tuple[Piece, int]:
    given = Path(expanded(path))
    if not given.is_absolute():
        if workspace is None:
            raise InvalidInput(
                f"{keys[2]}: {path!r} is relative, and the session has no folder; use workspace"
            )
        given = workspace / given
    real = Path(os.path.realpath(given))
    if real in roots:
        raise InvalidInput(f"{keys[2]}: {path!r} is not a file; name files")
    root = next((one for one in roots if real.is_relative_to(one)), None)
    if root is None:
        raise NotAllowed(f"{keys[2]}: {path!r} is in none of the folders of {keys[0]}")
    below = real.relative_to(root)
    if ".git" in below.parts:
        raise NotAllowed(f"{keys[2]}: {path!r} belongs to git, not to the project")
    if not may_read(real):
        raise NotAllowed(f"{keys[2]}: {path!r} may not be read in this session")
    data = _read(root, below, path, room, keys)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if (data and not text) or "\0" in text:
        raise InvalidInput(f"{keys[2]}: {path!r} is not text (UTF-8)")
    return Piece(below.as_posix(), text), len(data)


def _read(root: Path, below: Path, shown: str, room: int, keys: tuple[str, str, str]) -> bytes:
    """Its content, reached step by step: a link put in the way since it was resolved leads nowhere."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with Tree(root) as tree, tree.folder(b"/".join(map(os.fsencode, below.parts[:-1]))) as folder:
            handle = os.open(below.name, flags, dir_fd=folder)
            with os.fdopen(handle, "rb") as stream:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise InvalidInput(f"{keys[2]}: {shown!r} is not a file; name files")
                data = stream.read(max(room, 0) + 1)
    except IsADirectoryError:
        raise InvalidInput(f"{keys[2]}: {shown!r} is not a file; name files") from None
    except OSError as error:
        raise InvalidInput(f"{keys[2]}: {shown!r} cannot be read: {error.strerror}") from None
    if len(data) > room:
        raise InvalidInput(f"{keys[2]}: with {shown!r} the material is larger than {keys[1]} allows")
    return data
