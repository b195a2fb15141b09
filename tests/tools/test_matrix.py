"""The checks on every Python that is here: what is not here is said loudly, what fails is not hidden."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.conftest import CHECKOUT

VERSIONS = ("3.11", "3.12", "3.13", "3.14")

TEST = """#!/bin/sh
echo "tested with $BATON_PYTHON: $*"
case "$BATON_PYTHON" in *{failing}*) exit {status} ;; esac
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("matrix.sh", "pythons.sh"):
        shutil.copy(CHECKOUT / "scripts" / name, tmp_path / "scripts" / name)
    return tmp_path


def _here(place: Path, version: str) -> None:
    """A Python that answers as one of that version does."""
    program = place / "bin" / f"python{version}"
    program.write_text(f'#!/bin/sh\ncase "$*" in *"\'{version}\'"*) echo "$0" ;; *) exit 1 ;; esac\n')
    program.chmod(0o755)


def _run(place: Path, failing: str = "none", status: int = 1) -> subprocess.CompletedProcess[str]:
    test = place / "scripts" / "test.sh"
    test.write_text(TEST.format(failing=failing, status=status))
    test.chmod(0o755)
    env = {"PATH": f"{place / 'bin'}:/usr/bin:/bin", "HOME": str(place), "PYENV_ROOT": str(place / "none")}
    command = ["sh", str(place / "scripts" / "matrix.sh"), "-k", "one"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def _last(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.splitlines()[-1]


def test_every_version_that_is_here_is_tested_and_the_others_are_said_to_be_skipped(place: Path) -> None:
    for version in VERSIONS[1:3]:
        _here(place, version)
    done = _run(place)
    # The system may have one of its own.
    tested = re.findall(r"tested with .*python([\d.]+): -k one", done.stdout)
    assert {"3.12", "3.13"} <= set(tested)
    skipped = re.findall(r"SKIPPED Python ([\d.]+): there is none here", done.stderr)
    assert sorted([*tested, *skipped]) == [*VERSIONS]
    assert done.returncode == 0
    assert _last(done).startswith("matrix: ran: 3.1")


def test_one_that_fails_is_named_and_the_others_are_still_run(place: Path) -> None:
    for version in VERSIONS:
        _here(place, version)
    done = _run(place, failing="3.12")
    assert done.returncode == 1
    assert _last(done) == "matrix: ran: 3.11 3.12 3.13 3.14; failed: 3.12; SKIPPED: none"


@pytest.mark.parametrize("name", ["matrix.sh", "newest.sh", "test.sh"])
def test_help_is_one_line_and_runs_nothing(place: Path, name: str) -> None:
    script = shutil.copy(CHECKOUT / "scripts" / name, place / name)
    done = subprocess.run(["sh", script, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"usage: scripts/{name} [") and done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_an_argument_that_pytest_does_not_know_is_one_line_and_nothing_is_run(place: Path) -> None:
    script = str(CHECKOUT / "scripts" / "arguments.sh")
    command = ["sh", script, "test.sh", sys.executable, "-k", "one", "--nonsense"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "test.sh: unrecognized arguments: --nonsense; see scripts/test.sh --help\n"
    subprocess.run(command[:-1], cwd=CHECKOUT, check=True)
    for version in VERSIONS:
        _here(place, version)
    done = _run(place, failing="3.11", status=4)
    assert done.returncode == 4 and "3.12" not in done.stderr


def test_a_program_that_only_has_the_name_is_passed_over(place: Path) -> None:
    (place / "bin" / "python3.14").symlink_to(shutil.which("false") or "/bin/false")
    env = {"PATH": f"{place / 'bin'}:/usr/bin:/bin", "HOME": str(place), "PYENV_ROOT": str(place / "none")}
    command = ["sh", str(place / "scripts" / "pythons.sh"), "3.14"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert str(place) not in done.stdout
    own = ".".join(map(str, sys.version_info[:2]))
    real = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command[-1] = own
    found = subprocess.run(command, env=real, capture_output=True, text=True, check=True).stdout.strip()
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    assert told.startswith(f"Python {own}.")
