"""Leads Codex to a bubblewrap that it can work with: its own, where the one on PATH is too old.

Codex sets its sandbox up with the first `bwrap` on PATH: for a worker's command on the PATH of that command,
for all else on its own. One without `--argv0` must find a link, which Codex keeps in its home, inside the
sandbox, where that home is denied: nothing runs. The system's is preferred all the same, since some systems
let no other make user namespaces.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path

from baton.codex.ask import ask
from baton.codex.version_cache import identity

NEEDED = "0.9"
"""The first version of bubblewrap that has the option."""

REMEDY = f"install bubblewrap {NEEDED} or newer, or take that one off PATH"

ANSWER_SECONDS = 5.0


def with_bubblewrap(env: Mapping[str, str], binary: Path) -> dict[str, str]:
    """The environment of a Codex process or a worker's command, with a `PATH` that leads to a usable one.

    Where the first `bwrap` is too old, the folder of the one that Codex brings goes before all others.
    Relative entries are left out: Codex looks them up from the folder it works in, and what it finds there
    runs outside the sandbox.
    """
    if "PATH" not in env:
        return dict(env)
    folders = _folders(env)
    found = _first(folders)
    own = None if found is None or _suits(found) else own_bubblewrap(binary)
    return {**env, "PATH": os.pathsep.join(folders if own is None else (str(own.parent), *folders))}


def used_bubblewrap(env: Mapping[str, str], binary: Path) -> str:
    """Which one is used with this environment, down to the very file."""
    found = _first(_folders(with_bubblewrap(env, binary)))
    return "its own" if found is None else f"{found} {identity(found)}"


def outdated(env: Mapping[str, str], binary: Path) -> str | None:
    """One line on the bubblewrap that is too old and cannot be got round; None when there is no such."""
    found = _first(_folders(env))
    if found is None or _suits(found) or own_bubblewrap(binary) is not None:
        return None
    said = ask(found, "--version", _ENVIRONMENT, ANSWER_SECONDS) or ""
    version = said.partition("\n")[0].strip().removeprefix("bubblewrap ") or "of an unknown version"
    return (
        f"{found} is bubblewrap {version}, too old for Codex, and none was found beside {binary}:"
        f" {NEEDED} or newer is needed, or none on PATH"
    )


def own_bubblewrap(binary: Path) -> Path | None:
    """The one that was installed with this Codex, where Codex itself looks for it."""
    folder = Path(os.path.realpath(binary)).parent
    for place in (folder, folder.parent):
        program = place / "codex-resources" / "bwrap"
        if _is_program(program) and os.pathsep not in str(program):
            return program
    return None


_ENVIRONMENT = {"PATH": os.defpath}


def _folders(env: Mapping[str, str]) -> tuple[str, ...]:
    if "PATH" not in env:
        return ()
    listed = (folder for folder in env["PATH"].split(os.pathsep) if folder.startswith("/"))
    # An empty PATH would be the folder it works in.
    return tuple(listed) or tuple(os.defpath.split(os.pathsep))


def _first(folders: tuple[str, ...]) -> Path | None:
    programs = (f"{folder}/bwrap" for folder in folders)
    return next((Path(program) for program in programs if _is_program(program)), None)


def _is_program(path: Path | str) -> bool:
    return os.access(path, os.X_OK) and Path(path).is_file()


def _suits(program: Path) -> bool:
    return _knows_argv0(program, identity(program))


@functools.lru_cache(maxsize=8)
def _knows_argv0(program: Path, _identity: str) -> bool:
    """Asked once for each file: Codex decides by the same text."""
    return "--argv0" in (ask(program, "--help", _ENVIRONMENT, ANSWER_SECONDS) or "")
