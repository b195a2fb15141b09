"""Programs of Baton's name files to Codex as Codex reads them, whatever the locale is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import baton

SHOW = """
import sys
from baton.process.utf8 import go_on_in_utf8
go_on_in_utf8()
print(sys.getfilesystemencoding(), ascii(sys.argv[1]))
"""

OPEN = """
from baton.contract.errors import Unsupported
from baton.engine.house import House
try:
    House.open()
except Unsupported as error:
    print(error.message)
"""


def in_ascii(test_root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where names of files are ASCII, as a locale of another encoding would have them."""
    forced = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    env = {
        "HOME": str(test_root / "Zoë"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(baton.__file__).parents[1]),
    }
    return subprocess.run(
        [sys.executable, *arguments],
        env={**env, **forced},
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=120,
    )


@pytest.fixture(autouse=True)
def home(test_root: Path) -> None:
    (test_root / "Zoë").mkdir()


def test_a_program_goes_on_in_utf8_with_its_arguments(test_root: Path) -> None:
    done = in_ascii(test_root, "-c", SHOW, "Zoë")
    assert done.stdout == r"utf-8 'Zo\xeb'" + "\n", done.stderr


def test_nothing_is_opened_where_names_would_be_misread(test_root: Path) -> None:
    done = in_ascii(test_root, "-c", OPEN)
    assert "reads names of files as ascii" in done.stdout, done.stderr
    assert not list((test_root / "Zoë").iterdir())


def test_the_command_works_there(test_root: Path) -> None:
    done = in_ascii(test_root, "-m", "baton.cli.main", "status")
    assert f"{test_root}/Zoë/.local/state/baton" in done.stdout, done.stderr


@pytest.mark.parametrize("program", ["baton.engine.runner", "baton.consult.runner"])
def test_what_outlives_a_session_works_there(test_root: Path, program: str) -> None:
    done = in_ascii(test_root, "-m", program, "r-none")
    assert done.returncode != 0 and "names of files" not in done.stderr
    assert "r-none" in done.stderr
