"""A person's repository for tests: real git, driven the way a person drives it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

Content = dict[bytes, tuple[str, bytes]]
"""Path to git mode and bytes."""


class Person:
    """A work tree and the commands that its owner types."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.top = os.fsencode(root)

    @classmethod
    def init(cls, root: Path, *options: str) -> Person:
        root.mkdir(parents=True)
        person = cls(root)
        person.git("init", "-q", "-b", "main", *options)
        person.git("config", "gc.auto", "0")
        person.git("config", "user.name", "Test Author")
        person.git("config", "user.email", "author@example.invalid")
        return person

    def git(self, *args: str | bytes, ok: bool = True, input: bytes | None = None) -> bytes:
        done = subprocess.run(
            ["git", *args],
            cwd=self.root,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            check=False,
        )
        if ok and done.returncode != 0:
            raise AssertionError(f"git {args}: {done.stderr.decode(errors='replace')}")
        return done.stdout.strip()

    def write(self, path: str | bytes, data: bytes | str = b"", mode: int = 0o644) -> None:
        full = self.full(path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        os.chmod(full, mode)

    def link(self, path: str | bytes, text: str | bytes) -> None:
        full = self.full(path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        os.symlink(os.fsencode(text), full)

    def full(self, path: str | bytes) -> bytes:
        return os.path.join(self.top, os.fsencode(path))

    def commit(self, message: str = "work") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").decode()


def on_disk(root: Path) -> Content:
    """Every file and link below a folder, `.git` at its top left out."""
    top = os.fsencode(root)
    found: Content = {}
    for folder, folders, files in os.walk(top):
        if folder == top:
            folders[:] = [name for name in folders if name != b".git"]
            files = [name for name in files if name != b".git"]
        for name in [*files, *(entry for entry in folders if os.path.islink(os.path.join(folder, entry)))]:
            full = os.path.join(folder, name)
            if not os.path.islink(full) and not os.path.isfile(full):
                raise AssertionError(f"{full!r} is a special file")
            found[os.path.relpath(full, top)] = _state(full)
    return found


def footprint(root: Path) -> dict[bytes, tuple[int, int, str, bytes]]:
    """Every file of a work tree and its git directory with mode, time and bytes; not a pin, not the lock."""
    top = os.fsencode(root)
    found = {}
    for folder, _, files in os.walk(top):
        for name in files:
            full = os.path.join(folder, name)
            path = os.path.relpath(full, top)
            if path.startswith(b".git/refs/baton/pin/") or path == b".git/baton.lock":
                continue
            facts = os.lstat(full)
            found[path] = (facts.st_mode, facts.st_mtime_ns, *_state(full))
    return found


def _state(full: bytes) -> tuple[str, bytes]:
    if os.path.islink(full):
        return "120000", os.readlink(full)
    with open(full, "rb") as file:
        data = file.read()
    return ("100755" if os.lstat(full).st_mode & 0o100 else "100644"), data
