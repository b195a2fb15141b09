"""The real Codex installs the plugin from a checkout, shows its tools at once, and calls them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import javascript, say
from baton.tools.catalogue import tool_specs

pytestmark = pytest.mark.codex

LIST_AND_CALL = """// @exec: {"yield_time_ms": 290000}
text(JSON.stringify(ALL_TOOLS.map(tool => tool.name).filter(name => name.startsWith("mcp__baton__")).sort()));
text(JSON.stringify(await tools.mcp__baton__inspect_run({runId: "r1"})));
"""

TOOLS = sorted(spec.name for spec in tool_specs())


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@dataclass(frozen=True)
class Codex:
    """A Codex home with the plugin installed from a checkout of its own."""

    binary: Path
    home: Path
    workspace: Path
    model: ScriptedModel

    def run(self, *arguments: str, env: Mapping[str, str | None] | None = None) -> str:
        variables = {"CODEX_HOME": str(self.home), **{k: v for k, v in (env or {}).items() if v is not None}}
        done = subprocess.run(
            [self.binary, *arguments],
            cwd=self.workspace,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def list_and_call(self, **env: str) -> tuple[list[str], dict[str, object]]:
        """Names of Baton's tools as JavaScript sees them in the first turn, and the result of one call."""
        self.model.fallback(javascript(LIST_AND_CALL), say("done"))
        self.run("exec", "--json", "--skip-git-repo-check", "-s", "workspace-write", "go on", env=env)
        lines = self.model.requests[-1].last_output.splitlines()
        names, result = [json.loads(line) for line in lines if line.startswith(("[", "{"))]
        return [name.removeprefix("mcp__baton__") for name in names], result


@pytest.fixture
def codex(codex_binary: Path, model: ScriptedModel, plugin: Path, test_root: Path) -> Codex:
    shutil.copytree(Path(__file__).parents[2] / ".agents", plugin / ".agents")
    workspace = test_root / "a workspace"
    workspace.mkdir()
    home = write_simulated_home(test_root / "codex-home", model.port)
    made = Codex(codex_binary, home, workspace, model)
    made.run("plugin", "marketplace", "add", str(plugin))
    made.run("plugin", "add", "baton@baton", "--json")
    return made


def test_installed_plugin_is_enabled(codex: Codex) -> None:
    (entry,) = json.loads(codex.run("plugin", "list", "--json"))["installed"]
    assert entry["pluginId"] == "baton@baton" and entry["installed"] and entry["enabled"]


def test_tools_are_in_the_first_request_and_a_call_says_who_calls(codex: Codex, fake_runtime: Path) -> None:
    names, result = codex.list_and_call(BATON_RUNTIME=str(fake_runtime))
    assert names == TOOLS
    structured = result["structuredContent"]
    assert isinstance(structured, dict)
    session = structured["session"]
    first = codex.model.requests[0]
    assert session["cwd"] == str(codex.workspace)
    assert session["threadId"] == first.thread_id
    assert session["model"] == first.model
    assert session["profile"]["permissionProfile"]
    assert Path(session["launcher"]).exists()


def test_tools_are_there_with_nothing_built_and_a_call_then_says_why_it_cannot_be_served(
    codex: Codex,
) -> None:
    nothing = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "UV_NO_INDEX": "1", "UV_OFFLINE": "1"}
    names, result = codex.list_and_call(PIP_FIND_LINKS=str(codex.workspace), **nothing)
    assert names == TOOLS
    assert result["isError"] is True
    structured = result["structuredContent"]
    assert isinstance(structured, dict)
    assert structured["error"] == "runtime_unavailable"
    assert "could not be fetched" in str(structured["message"])


def test_what_codex_copies_is_small(plugin: Path, codex: Codex) -> None:
    installed = codex.home / "plugins/cache/baton/baton"
    size = sum(path.stat().st_size for path in installed.rglob("*") if path.is_file())
    assert 0 < size < 5_000_000
