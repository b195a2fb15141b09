"""A bundle with faults: each one line with file, key and expectation."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.policy.bundle_check import MARKET, PACKAGE, PLUGIN, SERVERS, bundle_faults

CHECKOUT = Path(__file__).resolve().parents[2]
PARTS = ("policy", "skills", "agents", "scripts", ".codex-plugin", ".agents")


@pytest.fixture
def bundle(test_root: Path) -> Path:
    copy = test_root / "bundle"
    for part in PARTS:
        shutil.copytree(CHECKOUT / part, copy / part)
    for name in (SERVERS, "pyproject.toml", PACKAGE):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, copy / name)
    return copy


def _edit_json(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))


def test_checkout_has_no_faults() -> None:
    assert bundle_faults(CHECKOUT) == []


def test_manifest_faults_name_key_and_expectation(bundle: Path) -> None:
    def spoil(data: dict[str, Any]) -> None:
        data["skils"] = data.pop("skills")
        data["mcpServers"] = "../elsewhere.json"
        data["version"] = "one"
        data["interface"]["defaultPrompt"] = ["a", "b", "c", "d" * 129]
        data["interface"]["logo"] = "./logo.png"

    _edit_json(bundle / PLUGIN, spoil)
    told = "\n".join(bundle_faults(bundle))
    for expected in (
        f"{PLUGIN}: skils: unknown key; did you mean 'skills'?",
        f"{PLUGIN}: skills: required, but missing",
        f"{PLUGIN}: mcpServers: must start with ./ and stay inside the plugin",
        f"{PLUGIN}: version: string should match pattern",
        f"{PLUGIN}: interface.defaultPrompt",
        f"{PLUGIN}: interface.logo: expected a path that exists, got ./logo.png",
        f"{PLUGIN}: version: expected",
    ):
        assert expected in told
    assert all(line and "\n" not in line for line in bundle_faults(bundle))


def test_marketplace_must_lead_to_the_plugin_by_its_name(bundle: Path) -> None:
    def spoil(data: dict[str, Any]) -> None:
        data["plugins"][0]["name"] = "batton"
        data["plugins"][0]["source"]["path"] = "./plugins"

    _edit_json(bundle / MARKET, spoil)
    assert bundle_faults(bundle) == [
        f"{MARKET}: plugins[0].name: expected 'baton' as in {PLUGIN}, got 'batton'",
        f"{MARKET}: plugins[0].source.path: expected a folder with {PLUGIN}, got ./plugins",
    ]


def test_server_faults_are_told(bundle: Path) -> None:
    def spoil(data: dict[str, Any]) -> None:
        server = data["mcpServers"]["baton"]
        server["envvars"] = []
        server["env_vars"] += ["CODEX_HOME"]
        server["args"] = ["scripts/gone.sh"]
        server["default_tools_approval_mode"] = "always"

    _edit_json(bundle / SERVERS, spoil)
    told = "\n".join(bundle_faults(bundle))
    for expected in (
        "mcpServers.baton.envvars: unknown key; did you mean 'env_vars'?",
        "mcpServers.baton.env_vars: names CODEX_HOME twice",
        "mcpServers.baton.args: expected a file of the plugin, got scripts/gone.sh",
        "mcpServers.baton.default_tools_approval_mode: input should be 'auto', 'prompt' or 'approve'",
    ):
        assert f"{SERVERS}: {expected}" in told


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda text: text.replace("name: ", "nam: ", 1), "SKILL.md: nam: unknown key; did you mean 'name'?"),
        (lambda text: text.replace('description: "', 'description: "' + "x" * 150, 1), "at most 150"),
        (lambda text: text.removeprefix("---\n"), "SKILL.md: cannot be read: expected front matter"),
        (lambda text: text + "\n" * 80, "SKILL.md: expected at most 79 lines, got"),
        (lambda text: text + "[x](references/none.md)\n", "expected a link to a file of the skill"),
        (lambda text: text.replace("name: route", "name: root", 1), "name: expected 'route-subagents'"),
    ],
)
def test_skill_faults_are_told(bundle: Path, spoil: Callable[[str], str], expected: str) -> None:
    file = bundle / "skills" / "route-subagents" / "SKILL.md"
    file.write_text(spoil(file.read_text()))
    told = bundle_faults(bundle)
    assert any(
        line.startswith("skills/route-subagents/SKILL.md: ")
        and expected in line.removeprefix("skills/route-subagents/")
        for line in told
    )
    assert "skills/route-subagents/SKILL.md: differs from line" in "\n".join(told)


def test_skill_sheet_faults_are_told(bundle: Path) -> None:
    sheet = bundle / "skills" / "orchestrate-work" / "agents" / "openai.yaml"
    sheet.write_text("interface:\n  display_name: 3\n  defaultprompt: x\npolicy: {}\n")
    told = "\n".join(bundle_faults(bundle))
    for expected in (
        "interface.display_name: input should be a valid string",
        "interface.defaultprompt: unknown key; did you mean 'default_prompt'?",
        "policy.allow_implicit_invocation: required, but missing",
    ):
        assert f"skills/orchestrate-work/agents/openai.yaml: {expected}" in told
    sheet.write_text("interface: [\n")
    assert any("openai.yaml: cannot be read: " in line for line in bundle_faults(bundle))


def test_agent_with_a_key_that_codex_does_not_know_is_told(bundle: Path) -> None:
    agent = bundle / "agents" / "luna-worker.toml"
    agent.write_text(agent.read_text().replace("developer_instructions", "instructions"))
    (bundle / "agents" / "notes.md").write_text("")
    told = "\n".join(bundle_faults(bundle))
    assert "agents/luna-worker.toml: instructions: unknown key; did you mean" in told
    assert "agents/luna-worker.toml: developer_instructions: required, but missing" in told
    assert "agents/notes.md: expected only .toml files here" in told


def test_policy_faults_are_told_with_their_file(bundle: Path) -> None:
    file = bundle / "policy" / "policy.toml"
    file.write_text(file.read_text().replace("max_parallel = 4", "max_parallel = 0\nmax_paralel = 3"))
    told = bundle_faults(bundle)
    assert "policy/policy.toml: concurrency.max_paralel: unknown key; did you mean 'max_parallel'?" in told
    assert any(line.startswith("policy/policy.toml: concurrency.max_parallel: ") for line in told)


def test_versions_that_differ_and_missing_files_are_told(bundle: Path) -> None:
    package = bundle / PACKAGE
    package.write_text('"""Baton."""\n\n__version__ = "9.9.9"\n')
    told = "\n".join(bundle_faults(bundle))
    assert f"{PLUGIN}: version: expected '9.9.9' as in {PACKAGE}" in told
    assert f"pyproject.toml: project.version: expected '9.9.9' as in {PACKAGE}" in told
    (bundle / MARKET).unlink()
    assert f"{MARKET}: expected this file, but it is missing" in bundle_faults(bundle)


def test_script_exits_with_0_1_or_2_and_prints_one_line_for_each_fault(bundle: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        script = CHECKOUT / "scripts" / "validate.py"
        return subprocess.run(
            [sys.executable, str(script), *arguments],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT / "server"), "HOME": "/nowhere"},
            capture_output=True,
            text=True,
            check=False,
        )

    assert (run().returncode, run().stdout) == (0, "")
    (bundle / "agents" / "luna-worker.toml").unlink()
    broken = run(str(bundle))
    assert broken.returncode == 1
    assert broken.stdout == "agents/luna-worker.toml: missing; run `baton policy render`\n"
    assert run("--wrong").returncode == 2
    assert run(str(bundle / "none")).returncode == 2
