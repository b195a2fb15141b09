"""A Codex to drive, and a short way to run it once against the scripted model."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from simulate.driver import Exec


@pytest.fixture
def codex_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A throw-away Codex home."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server


@pytest.fixture
def run_exec(
    codex_binary: Path, codex_home: Path, model: ScriptedModel, tmp_path: Path
) -> Callable[..., Exec]:
    """Run `codex exec PROMPT` in tmp_path against the scripted model."""

    def run(prompt: str, slug: str = "gpt-5.6-luna", *options: str) -> Exec:
        write_simulated_home(codex_home, model.port, model=slug)
        scratch = codex_home / "tmp"
        scratch.mkdir(exist_ok=True)
        # Codex refuses a home below the temporary folder: so that folder is moved into the home.
        environment = {name: str(codex_home) for name in ("HOME", "CODEX_HOME")}
        environment |= {"PATH": os.environ["PATH"], "TMPDIR": str(scratch)}
        command = [codex_binary, "exec", "--skip-git-repo-check", "--json", "-s", "workspace-write", *options]
        done = subprocess.run(
            [*command, "-C", tmp_path, prompt],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return Exec(done.returncode, events, done.stderr)

    return run
