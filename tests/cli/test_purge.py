"""`baton uninstall --purge` removes the state folder, and never under somebody who works there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from baton.ledger.locks import FileLock
from baton.ledger.state import StateFolder
from cli.conftest import Run


def test_state_goes_also_where_nothing_was_installed(run: Run) -> None:
    state = Path(os.environ["BATON_STATE"])
    StateFolder.find(os.environ)  # makes it
    assert run("uninstall").exit_code == 1 and state.exists()
    dry = run("uninstall", "--purge", "--dry-run")
    assert dry.exit_code == 0 and "would be removed" in dry.output and state.exists()
    policy = Path(os.environ["CODEX_HOME"]) / "baton" / "policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text("", encoding="utf-8")
    done = run("uninstall", "--purge")
    assert done.exit_code == 0, done.output
    assert f"your own policy stays: {policy}" in done.output and policy.exists()
    assert f"{state} is removed" in done.output and not state.exists()


@pytest.mark.parametrize("kind", ["run", "pool", "consultation"])
def test_nothing_is_removed_while_somebody_works_there(run: Run, kind: str) -> None:
    state = StateFolder.find(os.environ)
    with FileLock(getattr(state, f"{kind}_lock")("xabc")):
        refused = run("uninstall", "--purge")
    assert refused.exit_code == 1
    assert f"a {kind} is at work" in refused.stderr and refused.stderr.count("\n") == 1
    assert state.root.exists()
