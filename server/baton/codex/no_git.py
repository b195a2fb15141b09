"""Keeps Codex itself from running git in a worker's tree."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def without_git(env: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment of an app-server, with a program that fails at once in the place of git.

    Codex asks git some ten times in a turn, outside the sandbox, for what it notes of the repository: branch,
    remote, what is changed. Baton keeps its own record, and a repository's address is nobody's business; it
    is a tenth of what a short turn costs besides. A worker's commands have a `PATH` of their own, with git.

    `folder` is made and holds nothing else. Where no such program is to be had, nothing changes.
    """
    failing = shutil.which("false", path="/usr/bin:/bin")
    if failing is None or "PATH" not in env:
        return dict(env)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (folder / "git").symlink_to(failing)
    return {**env, "PATH": f"{folder}{os.pathsep}{env['PATH']}"}
