"""What answers whatever the policy says."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton import __version__
from cli.conftest import Run


@pytest.mark.parametrize(("option", "said"), [("--version", __version__), ("--help", "Usage: baton")])
def test_version_and_help_read_no_policy(run: Run, own_home: Path, option: str, said: str) -> None:
    file = own_home / ".codex" / "baton" / "policy.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[consult\n")
    done = run(option)
    assert done.exit_code == 0 and said in done.stdout
    assert "policy.toml" in run("policy", "show").stderr
