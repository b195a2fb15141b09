"""The level of our logs, as a program that sets it up prints them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import logging
from baton.process.logs import set_up_logging
set_up_logging("warning", "%(levelname)s %(message)s")
for level in ("debug", "info", "warning", "error"):
    getattr(logging.getLogger("baton.test"), level)("said")
"""


def _said(level: str | None) -> list[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    env |= {} if level is None else {"BATON_LOG": level}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, check=True, capture_output=True, text=True)
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (None, ["WARNING said", "ERROR said"]),
        ("", ["WARNING said", "ERROR said"]),
        ("error", ["ERROR said"]),
        ("DEBUG", ["DEBUG said", "INFO said", "WARNING said", "ERROR said"]),
        (" info ", ["INFO said", "WARNING said", "ERROR said"]),
    ],
)
def test_the_variable_names_the_level(level: str | None, said: list[str]) -> None:
    assert _said(level) == said


def test_what_others_wrote_does_nothing_to_a_terminal() -> None:
    script = SCRIPT.partition("for level")[0] + (
        "try:\n    raise ValueError('\\x1b[2J\\udcff')\n"
        "except ValueError:\n    logging.getLogger('baton').exception('at %s', '\\u202e\\x1b]0;x\\x07')\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", script], env=env, check=True, capture_output=True)
    lines = done.stderr.decode().splitlines()
    assert lines[0] == "ERROR at \\u202e\\x1b]0;x\\x07"
    assert lines[-1] == "ValueError: \\x1b[2J\\xff"
    assert all(line.isprintable() for line in lines)


def test_a_name_that_is_no_level_is_one_line_and_no_failure() -> None:
    first, *rest = _said("verbose")
    assert (
        first
        == "BATON_LOG is 'verbose', which is none of debug, info, warning, error, critical; warning is used"
    )
    assert rest == ["WARNING said", "ERROR said"]


@pytest.mark.parametrize("module", ["baton.cli.main", "baton.engine.runner", "baton.tools.server"])
def test_every_program_says_what_is_wrong_with_the_variable_and_goes_on(module: str) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "BATON_LOG": "x"}
    done = subprocess.run(
        [sys.executable, "-m", module], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.stderr.startswith("BATON_LOG is 'x'")
    assert "Traceback" not in done.stderr
