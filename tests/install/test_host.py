"""How other programs are told of the server; with the real Claude Code as the host of one."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from baton.cli.main import baton
from baton.consult.adapters.protocol import Runtime
from baton.contract.errors import Unsupported
from baton.install.host import HOSTS, registration
from baton.install.places import Places
from baton.policy.layer import PERSON_FILE
from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import Call, Say
from baton.simulate.service import KEY, ScriptedService
from consult.adapters.conftest import agent_at, real
from real_codex import real_codex

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def bundle(test_root: Path) -> Path:
    folder = test_root / "a bundle"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "serve.sh").write_text("")
    return folder


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_starts_the_server_with_its_own_name(host: str, bundle: Path) -> None:
    env = dict(os.environ)
    found = registration(host, Places.find(env), env, bundle)
    assert found.command == ("sh", str(bundle / "scripts" / "serve.sh"))
    assert found.env["BATON_HOST_RUNTIME"] == host
    assert found.env["BATON_STATE"] == env["BATON_STATE"]
    assert found.env["CODEX_HOME"] == env["CODEX_HOME"]
    assert (found.line is None) != (found.entry is None)


def test_the_line_is_one_command_for_a_shell(bundle: Path) -> None:
    found = registration("claude", Places.find(os.environ), {"CODEX_HOME": "/it's/a home"}, bundle)
    words = shlex.split(found.line or "")
    assert words[:6] == ["claude", "mcp", "add", "--scope", "user", "baton"]
    assert "CODEX_HOME=/it's/a home" in words
    assert words[words.index("--") + 1 :] == list(found.command)


def test_the_installed_copy_is_started_where_there_is_one(bundle: Path) -> None:
    places = Places.find(os.environ)
    shutil.copytree(bundle, places.bundle)
    found = registration("codex", places, {}, bundle)
    assert found.command[1] == str(places.bundle / "scripts" / "serve.sh")


def test_without_a_server_there_is_nothing_to_register(test_root: Path) -> None:
    with pytest.raises(Unsupported, match="baton install"):
        registration("codex", Places.find(os.environ), {}, test_root)


def test_init_prints_the_line_alone_on_standard_output() -> None:
    done = CliRunner().invoke(baton, ["init", "--host", "claude"])
    assert done.exit_code == 0
    assert done.stdout.startswith("claude mcp add")
    assert len(done.stdout.splitlines()) == 1
    entry = CliRunner().invoke(baton, ["init", "--host", "opencode"])
    assert json.loads(entry.stdout)["mcp"]["baton"]["type"] == "local"
    assert json.loads(CliRunner().invoke(baton, ["init", "--json"]).stdout)["host"] == "codex"


@pytest.mark.long
@pytest.mark.codex
def test_claude_code_as_the_host_calls_a_tool_in_the_folder_it_works_in(test_root: Path) -> None:
    project = test_root / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "a.py").write_text("a = 1\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    call = Call(
        "mcp__baton__delegate_task", {"objective": "Change a", "allowedFiles": ["src/a.py"], "dryRun": True}
    )
    with ScriptedModel() as model:
        write_simulated_home(Path(os.environ["CODEX_HOME"]), model.port)
        (told,) = _session_of_claude(test_root, project, {"BATON_CODEX_BIN": str(real_codex())}, call)
    result = json.loads(told)
    assert result["workspace"] == str(project)
    assert result["tasks"][0]["writable"] == ["src/"]
    assert model.requests == ()


@pytest.mark.long
def test_claude_code_as_the_host_consults_another_agent_and_never_itself(test_root: Path) -> None:
    program = real(Runtime.COPILOT)
    project = test_root / "project"
    project.mkdir()
    empty: dict[str, Any] = {"assumptions": [], "uncertainties": [], "followUps": [], "sources": []}
    with ScriptedService(Say(json.dumps({"answer": "It is.", **empty}))) as asked:
        agent, variables = agent_at(Runtime.COPILOT, asked, program)
        policy = Path(os.environ["CODEX_HOME"]) / PERSON_FILE
        policy.parent.mkdir(parents=True)
        policy.write_text(
            "[consult]\nenabled = true\n[consult.agents.copilot]\n"
            f"command = {json.dumps(program)}\nmodel = {json.dumps(agent.model)}\n"
        )
        calls = [
            Call("mcp__baton__consult", {"question": "Is it so?", "targets": [name]})
            for name in ("copilot", "claude")
        ]
        answered, refused = _session_of_claude(test_root, project, variables, *calls)
    result = json.loads(answered)
    assert result["state"] == "answered", answered
    assert [(one["agent"], one["answer"]) for one in result["answers"]] == [("copilot", "It is.")]
    assert "claude is not asked: it runs on claude like the session that asks" in refused
    assert len(asked.asked) == 1


def _session_of_claude(root: Path, project: Path, variables: Mapping[str, str], *calls: Call) -> list[str]:
    """What the real Claude Code is told by the tools that its scripted model calls, one after the other."""
    claude = real(Runtime.CLAUDE)
    with ScriptedService(*calls, Say("done")) as service:
        env = {
            **os.environ,
            **variables,
            "BATON_RUNTIME": str(_own_python(root)),
            "ANTHROPIC_BASE_URL": service.root,
            "ANTHROPIC_API_KEY": f"sk-ant-{KEY}",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        told = registration("claude", Places.find(env), env, CHECKOUT)
        # The server sees what it was registered with, not what this test happens to have.
        plain = {name: value for name, value in env.items() if not name.startswith("BATON_")}
        assert "Added" in _run([claude, *shlex.split(told.line or "")[1:]], plain, project)
        argv = [claude, "-p", "--output-format", "stream-json", "--verbose", "--model", "claude-sonnet-5"]
        said = _run([*argv, "--allowedTools", *{call.tool for call in calls}], plain, project, "Go on.")
    blocks = [
        block
        for event in map(json.loads, said.splitlines())
        if event["type"] == "user"
        for block in event["message"]["content"]
    ]
    return [str(block["content"]) for block in blocks if block.get("type") == "tool_result"]


def _run(argv: list[str], env: dict[str, str], cwd: Path, text: str = "") -> str:
    done = subprocess.run(argv, env=env, cwd=cwd, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _own_python(root: Path) -> Path:
    """This Python under another name, with the package on its path also where it is isolated."""
    path = root / "own-python"
    variables = f"PYTHONPATH='{CHECKOUT / 'server'}' PYTHONPYCACHEPREFIX='{root / 'compiled'}'"
    path.write_text(f'#!/bin/sh\n[ "$1" != -I ] || shift\n{variables} exec \'{sys.executable}\' "$@"\n')
    path.chmod(0o755)
    return path
