"""The demonstration, as a person starts it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from baton.cli.demo import tell
from baton.contract.errors import BatonError
from baton.simulate.demonstration import scenes

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.codex
def test_demonstration_goes_as_it_says_and_its_runs_can_be_looked_at(codex_binary: Path) -> None:
    baton = [sys.executable, "-B", "-m", "baton.cli.main"]
    env = {**os.environ, "BATON_CODEX_BIN": str(codex_binary), "PYTHONPATH": str(CHECKOUT / "server")}
    played = subprocess.run(
        [*baton, "demo", "--keep"], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert played.returncode == 0, played.stderr
    for told in ("=> caught:", "=> prevented:", "=> verified on the tree", "the total is right"):
        assert told in played.stdout
    look = played.stdout.splitlines()[-1]
    assert look.startswith("look at its runs: env BATON_STATE=")
    words = shlex.split(look.removeprefix("look at its runs: ").partition(" (")[0])
    at = next(number for number, word in enumerate(words) if Path(word).name == "baton")
    listed = subprocess.run(
        [*words[:at], *baton, *words[at + 1 :]],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert [line.split("t1 ")[1].split()[0] for line in listed.stdout.splitlines()] == [
        "verified",
        "failed",
        "failed",
    ]


@pytest.mark.parametrize(
    ("verdict", "check", "scope"),
    [
        ("verified", "failed: python3 check.py", "prevented"),
        ("failed", "refused: python3 check.py", "prevented"),
        ("failed", "failed: python3 check.py", "detected"),
    ],
)
def test_demonstration_says_nothing_of_what_it_did_not_find(
    verdict: str, check: str, scope: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scenes()[0]
    found = {"verdict": verdict, "evidence": {"checks": [check], "scope": scope}}
    with pytest.raises(BatonError, match=r"went wrong.*baton doctor"):
        tell(found, scene)
    assert scene.shows not in capsys.readouterr().out
    tell({"verdict": "failed", "evidence": {"checks": ["failed: x"], "scope": "prevented"}}, scene)
    assert scene.shows in capsys.readouterr().out
