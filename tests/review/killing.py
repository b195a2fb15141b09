"""Programs of the tests that kill themselves after so many commits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from review.killed import KILLED

TESTS = Path(__file__).parents[1]


def killed(module: str, commits: int, folder: Path) -> bool:
    """Whether the program was killed before it was done."""
    paths = [str(TESTS), str(TESTS.parent / "server")]
    done = subprocess.run(
        [sys.executable, "-B", "-m", module, str(commits), str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode in (0, KILLED), done.stderr
    return done.returncode == KILLED
