"""Which files of a folder hold a word."""

from __future__ import annotations

import subprocess
from pathlib import Path


def files_with(folder: Path, word: str) -> list[str]:
    """Their paths in the folder.

    Another process reads them: one that opens a database by itself and closes it again drops the locks of
    its own connections, and what others write is hidden from these from then on.
    """
    done = subprocess.run(
        ["grep", "-rlaFZ", "-e", word, "."], cwd=folder, capture_output=True, text=True, timeout=60
    )
    # One that went away meanwhile holds nothing any more.
    assert all(line.endswith("No such file or directory") for line in done.stderr.splitlines()), done.stderr
    return [name.removeprefix("./") for name in done.stdout.split("\0") if name]
