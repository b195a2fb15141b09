"""Finds the program that a command names, before anything is started."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from baton.process.there import is_folder, is_there


@dataclass(frozen=True)
class Program:
    """A program that is there: its path, not resolved, because some look at the name they are called by."""

    path: Path
    interpreter: Path | None
    """What runs it when it is a script, as its first line says."""


@dataclass(frozen=True)
class Missing:
    """Why a program cannot be run at all."""

    why: str


def find_program(name: str, *, cwd: Path, path: str) -> Program | Missing:
    """Look a program up: with a slash relative to `cwd`, without one in `path` (the value of PATH).

    A script whose interpreter is not there counts as missing: starting it would blame the script.
    """
    if "/" in name:
        found = Path(os.path.normpath(cwd / name)) if not Path(name).is_absolute() else Path(name)
        if not is_there(found):
            return Missing(f"{name} does not exist")
        if is_folder(found):
            return Missing(f"{name} is a directory")
        if not os.access(found, os.X_OK):
            return Missing(f"{name} is not executable")
    else:
        hit = shutil.which(name, path=path)
        if hit is None:
            return Missing(f"{name} is not installed where checks look (PATH)")
        found = Path(hit)
    words = _first_line(found)
    if not words:
        return Program(found, None)
    interpreter = Path(words[0])
    if interpreter.name == "env":
        wanted = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
        hit = shutil.which(wanted, path=path) if wanted else None
        if wanted is not None and hit is None:
            return Missing(f"{name} needs {wanted}, which is not installed where checks look (PATH)")
        return Program(found, Path(hit) if hit else None)
    if not is_there(interpreter):
        return Missing(f"{name} needs {interpreter}, which does not exist")
    return Program(found, interpreter)


def _first_line(program: Path) -> list[str]:
    """The words after `#!`, or nothing when it is no script."""
    try:
        with program.open("rb") as file:
            head = file.read(512)
    except OSError:
        return []
    if not head.startswith(b"#!"):
        return []
    return os.fsdecode(head[2:].split(b"\n", 1)[0].strip()).split()
