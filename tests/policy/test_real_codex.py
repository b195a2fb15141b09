"""The real Codex takes the rendered skills and agents as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from baton.policy.bundle import bundle_root
from baton.policy.load import load_policy
from baton.policy.render import render
from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import Say, Step, native, say

pytestmark = pytest.mark.codex


def _first_request(binary: Path, codex_home: Path, project: Path, prompt: str = "Hello.") -> tuple[str, str]:
    """Everything that Codex tells the model at the start of a session, and Codex's own output."""
    with ScriptedModel() as model:
        model.fallback(Say("Hello."))
        write_simulated_home(codex_home, model.port, model="gpt-5.6-sol")
        done = subprocess.run(
            [str(binary), "exec", "--skip-git-repo-check", "--json", prompt],
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


def _spawned(
    binary: Path, codex_home: Path, project: Path, roles: Sequence[str], *, trusted: bool = True
) -> tuple[list[tuple[str, str | None]], str]:
    """Have a root spawn a native child of each role: their models and efforts, and what Codex printed."""
    steps: list[Step] = []
    for number, role in enumerate(roles):
        asked = {"agent_type": role, "task_name": f"t{number}", "message": "Go.", "fork_turns": "none"}
        steps += [native("collaboration", "spawn_agent", asked), native("collaboration", "wait_agent")]
    with ScriptedModel() as model:
        model.on("ROOT", *steps, say("Done."))
        model.fallback(say("A child's answer."))
        write_simulated_home(codex_home, model.port, model="gpt-5.6-sol")
        if trusted:
            with (codex_home / "config.toml").open("a") as config:
                config.write(f'\n[projects."{project}"]\ntrust_level = "trusted"\n')
        done = subprocess.run(
            [str(binary), "exec", "--skip-git-repo-check", "--json", "ROOT"],
            cwd=project,
            env={**os.environ, "CODEX_HOME": str(codex_home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        root = model.requests[0].thread_id
        children = [request for request in model.requests if request.thread_id != root]
        return [(child.model, child.effort) for child in children], done.stdout + done.stderr


def test_native_children_run_with_the_model_and_effort_of_the_projects_presets(
    codex_binary: Path, codex_home: Path, project: Path
) -> None:
    shutil.copytree(bundle_root() / "agents", project / ".codex" / "agents")
    (project / ".codex" / "agents" / "broken.toml").write_text('name = "broken"\nmodle = "x"\n')
    roles = ["luna-worker", "terra-worker", "independent-reviewer"]
    children, output = _spawned(codex_binary, codex_home, project, roles)
    presets = [tomllib.loads((bundle_root() / "agents" / f"{role}.toml").read_text()) for role in roles]
    assert children == [(preset["model"], preset["model_reasoning_effort"]) for preset in presets]
    assert "broken.toml" in output


def test_a_projects_preset_wins_over_the_persons_of_the_same_name_where_it_is_trusted(
    codex_binary: Path, codex_home: Path, project: Path
) -> None:
    shutil.copytree(bundle_root() / "agents", project / ".codex" / "agents")
    own = (bundle_root() / "agents" / "terra-worker.toml").read_text()
    (codex_home / "agents").mkdir()
    (codex_home / "agents" / "terra-worker.toml").write_text(
        own.replace('"gpt-5.6-terra"', '"gpt-5.6-luna"').replace('"high"', '"low"')
    )
    trusted, _ = _spawned(codex_binary, codex_home, project, ["terra-worker"])
    assert trusted == [("gpt-5.6-terra", "high")]
    untrusted, _ = _spawned(codex_binary, codex_home, project, ["terra-worker"], trusted=False)
    assert untrusted == [("gpt-5.6-luna", "low")]


@pytest.mark.parametrize("mode", ["adaptive", "control-plane"])
def test_supervisor_reads_the_root_mode_in_force_in_its_skill(
    codex_binary: Path, codex_home: Path, project: Path, mode: str
) -> None:
    own = codex_home / "baton" / "policy.toml"
    own.parent.mkdir()
    own.write_text(f"[root]\nmode = '{mode}'\n")
    for name, text in render(load_policy(codex_home, None), bundle_root()).items():
        if name.startswith("skills/"):
            file = project / ".agents" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    told, _ = _first_request(codex_binary, codex_home, project, "Use $orchestrate-work for this.")
    assert f"Root mode here: **{mode}**" in told
