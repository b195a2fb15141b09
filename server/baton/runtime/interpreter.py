"""Finds the Python that an environment is made with: 3.11 to 3.14, which the requirements are locked for."""

from __future__ import annotations

import glob
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

from baton.contract.errors import Unsupported

OLDEST, NEWEST = (3, 11), (3, 14)

_ASK = """import os, sys
print(sys.version_info[0], sys.version_info[1], "%s%s-%s-%s" % (
    sys.implementation.cache_tag, sys.abiflags, sys.platform, os.uname().machine), sep="\\n")"""


class Python:
    """An interpreter: its path and the ABI that installed packages depend on."""

    def __init__(self, path: str, abi: str) -> None:
        self.path = path
        self.abi = abi


def find_python(environment: Mapping[str, str]) -> Python:
    """What `BATON_PYTHON` names, what runs this, or one in the usual places: the first that fits.

    Raises `Unsupported` with one line when there is none.
    """
    own = str(getattr(sys, "_base_executable", None) or sys.executable)
    tried = set()
    for path in [environment.get("BATON_PYTHON") or own, own, *_candidates(environment)]:
        real = os.path.realpath(path)
        if real in tried or not os.access(path, os.X_OK):
            continue
        tried.add(real)
        found = _ask(path)
        if found is not None:
            return found
    raise Unsupported(
        f"Baton needs Python 3.11 to 3.14 and found only {sys.version_info[0]}.{sys.version_info[1]}: "
        "install one, for example as python3.12 on PATH or in ~/.local/bin, and call again"
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[str]:
    names = ["python3.13", "python3.12", "python3.14", "python3.11", "python3"]
    folders = environment.get("PATH", "").split(os.pathsep)
    folders += [os.path.expanduser("~/.local/bin"), "/usr/local/bin", "/opt/homebrew/bin", "/usr/bin"]
    pyenv = environment.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for name in names:
        for folder in folders:
            # A version manager's shim answers for a version that may not be there, and slowly.
            if folder and os.path.basename(folder) != "shims":
                yield os.path.join(folder, name)
    for pattern in (
        os.path.join(pyenv, "versions", "3.1[1-4]*", "bin", "python3"),
        os.path.expanduser("~/.local/share/uv/python/*3.1[1-4]*/bin/python3"),
        "/Library/Frameworks/Python.framework/Versions/3.1[1-4]/bin/python3",
    ):
        yield from sorted(glob.glob(pattern), reverse=True)


def _ask(path: str) -> Python | None:
    """The interpreter at `path` if it works and its version fits."""
    try:
        said = subprocess.run(
            [path, "-I", "-S", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=10,
            check=True,
        ).stdout.decode()
        major, minor, abi = said.split()
        fits = OLDEST <= (int(major), int(minor)) <= NEWEST
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Python(path, abi) if fits else None
