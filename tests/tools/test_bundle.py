"""The files by which Codex knows the plugin."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from baton import __version__
from baton.codex.home import OPENAI_VARIABLES
from baton.process import environment
from baton.runtime.places import BUNDLE, bundle_files
from baton.tools.surface import surface_path
from baton.verify.toolchain import TOOLS, Own
from tools.conftest import CHECKOUT

PASSED_BY_CODEX = {"HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"}


def test_all_files_of_the_bundle_name_one_version() -> None:
    plugin = json.loads((CHECKOUT / ".codex-plugin/plugin.json").read_text())
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    server = json.loads(surface_path().read_text())["initialize"]["serverInfo"]
    assert {plugin["version"], project["version"], server["version"], __version__} == {__version__}


def test_plugin_manifest_keeps_to_the_limits_of_codex() -> None:
    plugin = json.loads((CHECKOUT / ".codex-plugin/plugin.json").read_text())
    prompts = plugin["interface"]["defaultPrompt"]
    assert len(prompts) <= 3 and all(len(prompt) <= 128 for prompt in prompts)
    for key in ("skills", "mcpServers"):
        assert plugin[key].startswith("./") and (CHECKOUT / plugin[key]).exists()


def test_checkout_is_its_own_marketplace() -> None:
    market = json.loads((CHECKOUT / ".agents/plugins/marketplace.json").read_text())
    (entry,) = market["plugins"]
    assert entry["name"] == json.loads((CHECKOUT / ".codex-plugin/plugin.json").read_text())["name"]
    assert entry["source"] == {"source": "local", "path": "./"}


def test_what_is_installed_is_what_is_tracked_of_it_and_the_wheel_carries_the_same() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *BUNDLE], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout
    tracked = {name for name in listed.split("\0") if name}
    assert {name for name in BUNDLE if not (CHECKOUT / name).exists()} == set()
    assert tracked <= set(bundle_files(str(CHECKOUT)))
    wheel = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    assert wheel["packages"] == ["server/baton"]
    assert wheel["force-include"] == {name: f"baton/bundle/{name}" for name in BUNDLE if name != "server"}


def test_caches_links_and_hidden_files_are_no_part_of_what_is_installed(test_root: Path) -> None:
    wanted = ["policy/policy.toml", "server/baton/__init__.py", "skills/one/SKILL.md", ".mcp.json"]
    caches = [
        *("server/.mypy_cache/3.11/x.json", "server/baton/.ruff_cache/0/x", "server/.pytest_cache/README.md"),
        *("server/baton/__pycache__/x.cpython-311.pyc", "server/baton/y.pyc", "skills/one/.SKILL.md.swp"),
        *("policy/.hypothesis/unicode_data/x", "skills/.DS_Store", "tests/test_x.py", ".git/HEAD"),
    ]
    for name in (*wanted, *caches):
        (test_root / name).parent.mkdir(parents=True, exist_ok=True)
        (test_root / name).write_text("x")
    (test_root / "skills/linked").symlink_to(test_root / "tests")
    (test_root / "skills/linked.md").symlink_to(test_root / "tests/test_x.py")
    assert bundle_files(str(test_root)) == sorted(wanted)


def test_lock_files_name_no_index_and_pin_every_package() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (CHECKOUT / name).read_text()
        assert "://" not in text
        pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
        assert pins and all("==" in line and line.endswith("\\") for line in pins)


def test_every_package_that_is_declared_is_used() -> None:
    declared = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = {re.split(r"[<>=]", each)[0].lower().replace("_", "-") for each in declared}
    imported = {
        name
        for file in (CHECKOUT / "server" / "baton").rglob("*.py")
        for name in re.findall(r"^\s*(?:from|import) (\w+)", file.read_text(), re.MULTILINE)
    }
    used = {
        distribution.lower().replace("_", "-")
        for module, distributions in packages_distributions().items()
        if module in imported
        for distribution in distributions
    }
    assert wanted - used == set()


def test_both_locks_pin_the_same_versions() -> None:
    runtime, development = (
        {line.split()[0] for line in (CHECKOUT / name).read_text().splitlines() if "==" in line}
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert runtime <= development


def test_variables_that_children_may_see_reach_the_server() -> None:
    """Codex starts a server with next to no environment: what is not listed never gets to a check."""
    server = json.loads((CHECKOUT / ".mcp.json").read_text())["mcpServers"]["baton"]
    named = {
        *environment.SYSTEM,
        *environment.LOOKS,
        *environment.BUILD,
        *environment.REACH,
        *environment.HOMES,
    }
    wanted = {name for name in named if not name.endswith("*")} | {*OPENAI_VARIABLES}
    wanted |= {"BATON_STATE", environment.WORKER_MARKER, "CODEX_HOME", "BATON_CODEX_BIN"}
    for tool in TOOLS:
        wanted |= {*tool.kept}
        wanted |= {folder.variable for folder in tool.folders if not isinstance(folder, Own)}
    assert wanted - PASSED_BY_CODEX <= {*server["env_vars"]}


def test_server_is_started_by_codex_as_the_design_of_the_tools_needs_it() -> None:
    server = json.loads((CHECKOUT / ".mcp.json").read_text())["mcpServers"]["baton"]
    assert server["cwd"] == "." and (CHECKOUT / server["args"][0]).exists()
    assert server["tool_timeout_sec"] > 280, "wait_run may wait for 280 s"
    assert server["supports_parallel_tool_calls"] is True
    assert server["default_tools_approval_mode"] == "approve"
