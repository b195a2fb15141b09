"""What is there, for whoever may not be allowed to look: pathlib's questions raise where nobody can tell."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def is_there(path: Path) -> bool:
    """Whether something is at a path, links followed; no where it cannot be looked at."""
    with suppress(OSError):
        return path.exists()
    return False


def is_folder(path: Path) -> bool:
    """Whether a folder is at a path, links followed; no where it cannot be looked at."""
    with suppress(OSError):
        return path.is_dir()
    return False


def is_file(path: Path) -> bool:
    """Whether a regular file is at a path, links followed; no where it cannot be looked at."""
    with suppress(OSError):
        return path.is_file()
    return False


def program_on_path(name: str, env: Mapping[str, str]) -> Path | None:
    """The program of that name on PATH, None when there is none.

    A relative entry of PATH, an empty one too, would let the folder one happens to be in decide which program
    runs: it is passed over.
    """
    listed = env.get("PATH", os.defpath).split(os.pathsep)
    folders = [folder for folder in listed if Path(folder).is_absolute()]
    found = shutil.which(name, path=os.pathsep.join(folders))
    return None if found is None else Path(found)
