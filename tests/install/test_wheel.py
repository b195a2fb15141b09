"""What is released: the wheel alone, in a clean environment, does what the checkout does."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]

HOME = Path.home()
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or HOME / ".cache")
"""The development environment and the settings of the package index are those of whoever runs the tests."""


@pytest.mark.long
@pytest.mark.codex
@pytest.mark.timeout(1200)
def test_the_wheel_installs_into_a_clean_environment_and_plays_the_demonstration(test_root: Path) -> None:
    env = {**os.environ, "HOME": str(HOME), "XDG_CACHE_HOME": str(CACHE)}
    for name in ("BATON_STATE", "CODEX_HOME", "PYTHONPATH"):
        env.pop(name, None)
    command = [CHECKOUT / "scripts" / "wheel.sh", test_root / "dist"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in the workspace now: the total is right" in done.stdout
    (wheel,) = (test_root / "dist").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "baton/bundle/policy/policy.toml",
        "baton/bundle/skills/orchestrate-work/SKILL.md",
        "baton/bundle/requirements.lock",
        "baton/tools/surface.json",
    } <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests/", "docs/"))]
