"""Path files: a folder of any name is found by them, in any locale."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from baton.runtime.path_file import path_file

NAMES = ["plain, with a space", "Zoë", os.fsdecode(b"not text \xff"), "two\nlines", 'it\'s "x" \\n']


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    return folder


@pytest.mark.parametrize("locale", ["POSIX", "C.UTF-8"])
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_modules_of_a_folder_are_found_whatever_it_is_called(
    environment: Path, test_root: Path, name: str, locale: str
) -> None:
    folder = test_root / name
    folder.mkdir()
    (folder / "found_by_path.py").touch()
    (site,) = environment.glob("lib/*/site-packages")
    told = subprocess.check_output(
        [sys.executable, "-I", "-S", path_file.__code__.co_filename, str(folder)], env={"LC_ALL": locale}
    )
    assert told.decode("ascii") == path_file(str(folder))
    (site / "baton.pth").write_bytes(told)
    where = "import found_by_path as found; print(ascii(found.__file__))"
    asked = [str(environment / "bin/python"), "-I", "-c", where]
    done = subprocess.run(asked, env={"LC_ALL": locale}, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == ascii(str(folder / "found_by_path.py")), done.stderr


def test_a_plain_name_is_written_plainly() -> None:
    assert path_file("/opt/a b") == "/opt/a b\n"
