"""The real Codex takes the rendered skills and agents as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from baton.policy.bundle import bundle_root
from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import Say

pytestmark = pytest.mark.codex


def _first_request(binary: Path, codex_home: Path, project: Path) -> tuple[str, str]:
    """Everything that Codex tells the model at the start of a session, and Codex's own output."""
    with ScriptedModel() as model:
        model.fallback(Say("Hello."))
        write_simulated_home(codex_home, model.port, model="gpt-5.6-sol")
        done = subprocess.run(
            [str(binary), "exec", "--skip-git-repo-check", "--json", "Hello."],
            cwd=project,
            env={**os.environ, "CODEX_HOME": str(codex_home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        texts: list[str] = []
        _collect(dict(model.requests[0].body), texts)
        return "\n".join(texts), done.stdout + done.stderr


def _collect(node: object, texts: list[str]) -> None:
    if isinstance(node, str):
        texts.append(node)
    elif isinstance(node, dict):
        for inner in node.values():
            _collect(inner, texts)
    elif isinstance(node, list):
        for inner in node:
            _collect(inner, texts)


def test_codex_lists_every_skill_uncut(codex_binary: Path, codex_home: Path, project: Path) -> None:
    skills = bundle_root() / "skills"
    shutil.copytree(skills, project / ".agents" / "skills")
    told, _ = _first_request(codex_binary, codex_home, project)
    for file in skills.glob("*/SKILL.md"):
        description = file.read_text(encoding="utf-8").split("\n")[2].removeprefix("description: ").strip('"')
        assert f"{file.parent.name}: {description}" in told


def test_codex_offers_every_agent_with_its_model_and_effort(
    codex_binary: Path, codex_home: Path, project: Path
) -> None:
    agents = bundle_root() / "agents"
    shutil.copytree(agents, codex_home / "agents")
    (codex_home / "agents" / "broken.toml").write_text('name = "broken"\ndescription = "Has too few keys."\n')
    told, output = _first_request(codex_binary, codex_home, project)
    for file in agents.glob("*.toml"):
        agent = tomllib.loads(file.read_text(encoding="utf-8"))
        offered = told.partition(f"\n{agent['name']}: {{")[2].partition("\n}")[0]
        assert agent["description"] in offered
        assert f"`{agent['model']}`" in offered
        assert f"`{agent['model_reasoning_effort']}`" in offered
        assert str(codex_home / "agents" / file.name) not in output
    # Proof that a dropped role would have been noticed here.
    assert "\nbroken: {" not in told
    assert "broken.toml" in output
