"""After each kind of installation the real Codex has the server, the tools, the skills and the agents."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from baton.process import tree
from baton.simulate.model_server import ScriptedModel
from baton.tools.catalogue import tool_specs
from e2e.plugin_session import script, supervise
from install.home import picture
from install.machine import CALL, SECONDS, Machine, make_machine

pytestmark = pytest.mark.codex

TOOLS = sorted(f"mcp__baton__{spec.name}" for spec in tool_specs())


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running
        assert not running.surprises


@pytest.fixture
def machine(codex_binary: Path, model: ScriptedModel, own_home: Path, test_root: Path) -> Machine:
    return make_machine(codex_binary, model, own_home, test_root)


def test_a_personal_installation_gives_codex_server_tools_skills_and_agents(machine: Machine) -> None:
    before = machine.config.read_bytes()
    said = machine.baton("install", "--from", str(machine.checkout))
    assert "files changed" in said
    server = machine.server()
    assert server["transport"]["args"] == [str(machine.places.bundle / "scripts/serve.sh")]
    assert machine.plugins() == []
    request, tools, answer = machine.session("Look into it")
    assert tools == TOOLS
    assert answer["structuredContent"]["error"] == "not_found"
    assert "orchestrate-work" in request and "baton:orchestrate-work" not in request
    assert "luna-worker" in request
    assert "nothing to do" in machine.baton("install", "--from", str(machine.checkout))
    machine.baton("uninstall")
    assert machine.config.read_bytes() == before
    assert "No MCP server" in machine.codex("mcp", "get", "baton", status=1)


@pytest.mark.long
def test_an_installation_as_a_plugin_is_codexs_own_and_goes_without_a_trace(machine: Machine) -> None:
    before = machine.config.read_bytes()
    machine.baton("install", "--plugin", "--from", str(machine.checkout))
    assert machine.plugins() == ["baton@baton"]
    assert "/plugins/cache/baton/baton/" in machine.server()["transport"]["cwd"]
    assert "mcp_servers" not in machine.config.read_text()
    request, tools, answer = machine.session("Look into it")
    assert tools == TOOLS and answer["structuredContent"]["error"] == "not_found"
    assert "baton:orchestrate-work" in request and "luna-worker" in request
    machine.baton("install", "--plugin", "--from", str(machine.checkout))
    machine.baton("uninstall")
    assert machine.plugins() == []
    assert machine.config.read_bytes() == before
    assert not [name for name in picture(machine.places.home) if name.startswith(("baton", "agents"))]


@pytest.mark.long
def test_a_personal_installation_that_becomes_a_plugin_leaves_one_server(machine: Machine) -> None:
    machine.baton("install", "--from", str(machine.checkout))
    said = machine.baton("install", "--plugin", "--from", str(machine.checkout))
    assert "one server" in said
    assert "mcp_servers" not in machine.config.read_text()
    assert not (machine.places.home / "skills" / "orchestrate-work").exists()
    assert machine.server()["transport"]["args"] == ["scripts/serve.sh"]


@pytest.mark.long
def test_a_projects_agents_reach_codex_once_the_project_is_trusted(machine: Machine) -> None:
    machine.baton("install", "--from", str(machine.checkout))
    machine.baton("install", "--project", str(machine.project), "--from", str(machine.checkout))
    for file in (machine.places.home / "agents").iterdir():
        file.unlink()
    request, _, _ = machine.session("Look before it is trusted")
    assert "luna-worker" not in request
    with machine.config.open("a") as file:
        file.write(f"\n[projects.{json.dumps(str(machine.project))}]\ntrust_level = 'trusted'\n")
    request, _, _ = machine.session("Look into it now")
    assert "luna-worker" in request
    machine.baton("uninstall")
    assert not (machine.project / ".codex").exists()


@pytest.mark.long
@pytest.mark.parametrize("plugin", [False, True])
def test_the_tool_is_callable_in_the_interactive_program(machine: Machine, plugin: bool) -> None:
    with machine.config.open("a") as file:
        file.write(f"\n[projects.{json.dumps(str(machine.project))}]\ntrust_level = 'trusted'\n")
    machine.baton("install", *(["--plugin"] if plugin else []), "--from", str(machine.checkout))
    supervise(machine.model, "Look into it by hand", script(CALL))
    # Codex greets a person with news about an older model, so a present one is named.
    with terminal(machine, "-m", "gpt-6-luna", "Look into it by hand") as screen:
        until = time.monotonic() + SECONDS
        while "That is all." not in screen() and time.monotonic() < until:
            threading.Event().wait(0.2)
        shown = screen()
    assert "baton.inspect_run" in shown and "That is all." in shown, shown
    outputs = [request.last_output for request in machine.model.requests]
    assert any('"error":"not_found"' in output for output in outputs)


@contextmanager
def terminal(machine: Machine, *arguments: str) -> Iterator[Callable[[], str]]:
    """The interactive program in a terminal of its own; gives what is on its screen."""
    tmux = ["tmux", "-S", str(machine.user / "tmux"), "-f", "/dev/null"]
    size = ["-d", "-x", "150", "-y", "50", "-c", str(machine.project)]
    machine.run(*tmux, "new-session", *size, str(machine.binary), *arguments, env={"TERM": "xterm-256color"})
    try:
        yield lambda: machine.run(*tmux, "capture-pane", "-p")
    finally:
        machine.run(*tmux, "kill-server")
        # The interactive program leaves a daemon behind, which keeps its servers.
        tree.end_processes(tree.processes_with_marker("HOME", str(machine.user)))


@pytest.mark.long
def test_an_upgrade_from_an_installation_with_edits_still_loads(machine: Machine) -> None:
    machine.baton("install", "--from", str(machine.checkout))
    agent = machine.places.home / "agents" / "luna-worker.toml"
    agent.write_text(agent.read_text() + "# mine\n")
    template = machine.checkout / "policy/templates/agent.toml.j2"
    template.write_text(template.read_text() + "# a later version\n")
    said = machine.baton("install", "--from", str(machine.checkout), status=1)
    assert "--upgrade" in said
    said = machine.baton("install", "--upgrade", "--from", str(machine.checkout))
    assert f"keep  {agent}" in said
    assert agent.read_text().endswith("# mine\n")
    assert Path(f"{agent}.baton-new").read_text().endswith("# a later version\n")
    request, tools, _ = machine.session("Look into it")
    assert tools == TOOLS and "luna-worker" in request
