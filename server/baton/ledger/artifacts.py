"""Large evidence by content: files named by their sha256, written once, checked when read."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from baton.contract.errors import NotFound, StateUnavailable
from baton.ledger.state import StateFolder

SHA256 = re.compile(r"[0-9a-f]{64}")

CHUNK = 1024 * 1024


class Artifacts:
    """The artifacts of one state folder. Safe to use from several threads and processes."""

    def __init__(self, state: StateFolder) -> None:
        self._root = state.artifacts
        self._checked: set[tuple[str, int, int]] = set()

    def put_bytes(self, data: bytes) -> str:
        """Keep `data`, durably; its id. Keeping the same again only makes it young again for gc."""
        name = hashlib.sha256(data).hexdigest()
        with _said_in_one_line(self._root):
            if not self._refresh(name, len(data)):
                temporary = self._temporary()
                try:
                    with _new_private(temporary) as file:
                        file.write(data)
                        file.flush()
                        os.fsync(file.fileno())
                    self._settle(temporary, name)
                except BaseException:
                    temporary.unlink(missing_ok=True)
                    raise
        return name

    def put_file(self, path: Path, *, move: bool = False) -> str:
        """Keep a file's content, streamed; its id. With `move` the file is deleted afterwards."""
        with _said_in_one_line(self._root):
            temporary = self._temporary()
            try:
                name = _copy(path, temporary)
                if not self._refresh(name, temporary.stat().st_size):
                    self._settle(temporary, name)
            finally:
                temporary.unlink(missing_ok=True)
            if move:
                path.unlink()
        return name

    def read(self, name: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Up to `limit` bytes from `offset`.

        Raises `NotFound` for an unknown id and `StateUnavailable` when what is there is no longer what was
        kept: the content is hashed once per process and version of the file.
        """
        path = self._existing(name)
        with _said_in_one_line(self._root):
            self._check(name, path)
            with path.open("rb") as file:
                file.seek(offset)
                return file.read(-1 if limit is None else limit)

    def size(self, name: str) -> int:
        """Bytes of one artifact. Raises `NotFound`."""
        return self._existing(name).stat().st_size

    def exists(self, name: str) -> bool:
        return SHA256.fullmatch(name) is not None and self._path(name).is_file()

    def is_sound(self, name: str) -> bool:
        """Whether the whole content still is what its id says. Raises `NotFound`."""
        path = self._existing(name)
        with _said_in_one_line(self._root):
            return _hash(path) == name

    def all(self) -> Iterator[tuple[str, int, float]]:
        """Id, bytes and time of the last keeping (seconds since 1970) of every artifact."""
        for path in self._root.glob("??/*"):
            if SHA256.fullmatch(path.name):
                status = path.stat()
                yield path.name, status.st_size, status.st_mtime

    def delete(self, name: str) -> int:
        """Remove one artifact; the bytes freed, 0 when it was not there."""
        if not self.exists(name):
            return 0
        size = self.size(name)
        self._path(name).unlink(missing_ok=True)
        return size

    def _path(self, name: str) -> Path:
        return self._root / name[:2] / name

    def _existing(self, name: str) -> Path:
        if not self.exists(name):
            raise NotFound(f"no artifact {name[:80]!r}; `inspect_run` and `baton runs show` list a run's ids")
        return self._path(name)

    def _temporary(self) -> Path:
        return self._root / f"new-{os.getpid()}-{secrets.token_hex(6)}"

    def _refresh(self, name: str, size: int) -> bool:
        """True when it is already kept, sound by its size; its time is set to now."""
        path = self._path(name)
        try:
            if path.stat().st_size != size:
                return False
            os.utime(path)
        except FileNotFoundError:
            return False
        return True

    def _settle(self, temporary: Path, name: str) -> None:
        path = self._path(name)
        is_first = False
        try:
            temporary.replace(path)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            temporary.replace(path)
            is_first = True
        _sync_folder(path.parent)
        if is_first:
            # Last, when a journal has it with the rest already.
            _sync_folder(self._root)

    def _check(self, name: str, path: Path) -> None:
        status = path.stat()
        version = (name, status.st_mtime_ns, status.st_size)
        if version in self._checked:
            return
        if _hash(path) != name:
            raise StateUnavailable(f"the artifact {path} is damaged: its content no longer matches its id")
        self._checked.add(version)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _copy(source: Path, target: Path) -> str:
    digest = hashlib.sha256()
    with source.open("rb") as reader, _new_private(target) as writer:
        while chunk := reader.read(CHUNK):
            digest.update(chunk)
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())
    return digest.hexdigest()


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _new_private(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@contextmanager
def _said_in_one_line(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        free = shutil.disk_usage(root).free if root.exists() else 0
        raise StateUnavailable(
            f"an artifact cannot be kept or read in {root} ({error.strerror}: {error.filename or root};"
            f" {free // 2**20} MiB free)"
        ) from None
