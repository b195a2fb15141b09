"""The scripts that make the development environment: once, outside the checkout, clear on what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.conftest import CHECKOUT

# Answers what setup.sh asks of a Python, and "installs" by noting what it was asked to.
PYTHON = """#!/bin/sh
case "$*" in
*"-m venv"*)
    for folder; do :; done
    mkdir -p "$folder/bin" "$folder/lib/python3.11/site-packages"
    cp "$0" "$folder/bin/python" ;;
*"-m pip"*) echo "$*" >>"$NOTES"; echo "pip said why" ; [ ! -e "$NOTES.fail" ] ;;
*sys.executable*) echo "$0"; [ ! -e "$NOTES.old" ] ;;
*-V*) echo "Python 3.11.0" ;;
*fcntl*) ;;
*path_file.py*) for folder; do :; done; echo "by path_file: $folder" ;;
*codex_cli_bin*) exit 1 ;;
*) echo "ran: $*" ;;
esac
"""

TOOLS = ("sh", "dirname", "cat", "cut", "mkdir", "rm", "cp", "tail", "ln")


@dataclass(frozen=True)
class Doors:
    """A checkout with only the scripts, and a PATH with only what they may need."""

    root: Path
    programs: Path
    cache: Path
    notes: Path

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": str(self.programs),
            "HOME": str(self.root.parent / "empty"),
            "XDG_CACHE_HOME": str(self.cache),
            "NOTES": str(self.notes),
        }
        argv = ["/bin/sh", str(self.root / "scripts" / script), *arguments]
        return subprocess.run(argv, cwd="/", env=env, capture_output=True, text=True, timeout=60)

    def installs(self) -> int:
        return len(self.notes.read_text().splitlines()) if self.notes.exists() else 0

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)


@pytest.fixture
def doors(test_root: Path) -> Doors:
    root = test_root / "check out"
    (root / "scripts").mkdir(parents=True)
    for name in ("setup.sh", "python.sh", "baton", "demo.sh"):
        shutil.copy(CHECKOUT / "scripts" / name, root / "scripts")
    shutil.copy(CHECKOUT / "requirements-dev.lock", root)
    programs = test_root / "bin"
    programs.mkdir()
    for name in (*TOOLS, "git"):
        found = shutil.which(name)
        assert found is not None, name
        (programs / name).symlink_to(found)
    (test_root / "empty").mkdir()
    made = Doors(root, programs, test_root / "cache", test_root / "notes")
    made.program("python3", PYTHON)
    return made


def test_environment_is_made_once_and_outside_the_checkout(doors: Doors) -> None:
    before = sorted(doors.root.rglob("*"))
    first = doors.run("setup.sh")
    assert first.returncode == 0, first.stderr
    python = Path(first.stdout.strip())
    assert python.is_relative_to(doors.cache / "baton") and os.access(python, os.X_OK)
    (path_file,) = python.parents[1].glob("lib/*/site-packages/baton.pth")
    assert path_file.read_text() == f"by path_file: {doors.root / 'server'}\n"
    again = doors.run("setup.sh")
    assert again.stdout == first.stdout and again.stderr == ""
    assert doors.installs() == 1
    assert "--require-hashes" in doors.notes.read_text()
    assert sorted(doors.root.rglob("*")) == before


def test_changed_requirements_get_an_environment_of_their_own(doors: Doors) -> None:
    first = doors.run("setup.sh").stdout
    with (doors.root / "requirements-dev.lock").open("a") as lock:
        lock.write("# changed\n")
    assert doors.run("setup.sh").stdout != first
    assert doors.installs() == 2


def test_a_failed_installation_is_one_line_and_is_tried_again(doors: Doors) -> None:
    failing = doors.notes.with_name("notes.fail")
    failing.touch()
    failed = doors.run("setup.sh")
    assert failed.returncode == 1 and failed.stdout == ""
    assert "could not be installed: pip said why" in failed.stderr.splitlines()[-1]
    failing.unlink()
    assert doors.run("setup.sh").returncode == 0


def test_every_door_sets_up_and_runs_in_the_environment(doors: Doors) -> None:
    assert doors.run("python.sh", "a file.py", "x").stdout == "ran: a file.py x\n"
    assert doors.run("baton", "runs", "list").stdout == "ran: -m baton.cli.main runs list\n"
    assert doors.run("demo.sh").stdout == "ran: -m baton.cli.main demo\n"
    assert doors.installs() == 1


def test_no_python_that_fits_is_one_line(doors: Doors) -> None:
    doors.notes.with_name("notes.old").touch()
    failed = doors.run("setup.sh")
    assert failed.returncode == 1
    assert failed.stderr.splitlines() == [
        "setup: Python 3.11 to 3.14 is needed, and none was found; BATON_PYTHON may name one"
    ]


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("git version 2.38.0", True),
        ("git version 2.39.5 (Apple Git-154)", True),
        ("git version 3.0.1", True),
        ("git version 2.37.9", False),
        ("git version 1.99.0", False),
    ],
)
def test_git_that_is_too_old_is_one_line(version: str, fits: bool, doors: Doors) -> None:
    real = shutil.which("git")
    doors.program("git", f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" || exec {real} "$@"\n')
    done = doors.run("setup.sh")
    assert (done.returncode == 0) is fits
    if not fits:
        assert len(done.stderr.splitlines()) == 1 and "git 2.38 or newer is needed" in done.stderr


def test_no_git_is_one_line(doors: Doors) -> None:
    (doors.programs / "git").unlink()
    failed = doors.run("setup.sh")
    assert failed.returncode == 1
    assert failed.stderr.splitlines() == ["setup: git 2.38 or newer is needed, and there is none on PATH"]
