"""`baton consult`, and what the doctor says of the agents that may be asked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from baton.cli.main import baton
from baton.install.check_agents import check_agents
from baton.install.findings import Finding
from baton.policy.load import load_policy


@pytest.fixture(autouse=True)
def programs(test_root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that alone is PATH, with fakes that tell a version and a login."""
    folder = test_root / "bin"
    folder.mkdir()
    for name in ("BATON_CODEX_BIN", "CODEX_BIN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(folder))
    yield folder


def program(folder: Path, name: str, told: dict[str, str]) -> None:
    cases = "\n".join(f"  '{words}') echo '{answer}' ;;" for words, answer in told.items())
    (folder / name).write_text(f'#!/bin/sh\ncase "$*" in\n{cases}\nesac\n')
    (folder / name).chmod(0o755)


def claude(folder: Path, logged_in: bool) -> None:
    status = json.dumps({"loggedIn": logged_in, "authMethod": "claude.ai" if logged_in else "none"})
    program(folder, "claude", {"--version": "2.1.332 (Claude Code)", "auth status": status})


def run(*words: str) -> Result:
    return CliRunner().invoke(baton, ["consult", *words])


def test_setup_switches_consultation_on_and_says_who_is_there(programs: Path) -> None:
    claude(programs, logged_in=True)
    done = run("setup", "--model", "opencode=deepseek/x")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("wrote consult.enabled = true into ")
    assert [line for line in lines if line.startswith("ok") and "claude" in line and "2.1.332" in line]
    assert "npm install -g opencode-ai" in done.stdout
    rules = load_policy(Path(os.environ["CODEX_HOME"]), None).consult
    assert (rules.enabled, rules.agents["opencode"].model) == (True, "deepseek/x")


def test_setup_as_json(programs: Path) -> None:
    data = json.loads(run("setup", "--json", "--dry-run").stdout)
    assert (data["dryRun"], data["changes"]) == (True, ["consult.enabled = true"])
    assert {one["runtime"] for one in data["agents"]} == {
        "codex",
        "claude",
        "opencode",
        "copilot",
        "antigravity",
    }
    assert not load_policy(Path(os.environ["CODEX_HOME"]), None).consult.enabled


@pytest.mark.parametrize("words", [("--model", "opencode"), ("--model", "=x"), ("--model", "clod=x")])
def test_a_wrong_model_is_one_line(words: tuple[str, ...]) -> None:
    done = run("setup", *words)
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1


def test_agents_shows_the_exact_command_that_logs_one_in(programs: Path) -> None:
    claude(programs, logged_in=False)
    done = run("agents")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    (number,) = [n for n, line in enumerate(lines) if "claude" in line and "2.1.332" in line]
    assert lines[number].startswith("--")
    assert lines[number + 1].strip() == "-> claude auth login"


@pytest.mark.parametrize("name", ["BATON_CODEX_BIN", "CODEX_BIN"])
def test_a_wrongly_named_program_is_to_be_named_rightly_and_not_to_be_installed(
    programs: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "/nowhere/codex")
    lines = run("agents").stdout.splitlines()
    (number,) = [n for n, line in enumerate(lines) if "codex" in line and "/nowhere/codex" in line]
    assert lines[number + 1].strip() == f"-> name another program in {name}, or unset it"
    policy = Path(os.environ["CODEX_HOME"]) / "baton" / "policy.toml"
    policy.parent.mkdir(parents=True, exist_ok=True)
    policy.write_text('[consult]\nenabled = true\n[consult.agents.claude]\ncommand = "/nowhere/claude"\n')
    fixes = {finding.message.split(":")[0]: finding.fix or "" for finding in findings()}
    assert fixes["codex"] == f"name another program in {name}, or unset it"
    assert fixes["claude"].startswith("name another program than /nowhere/claude")


def findings() -> list[Finding]:
    rules = load_policy(Path(os.environ["CODEX_HOME"]), None).consult
    return list(check_agents(os.environ, rules))


def test_the_doctor_is_silent_where_consultation_is_off() -> None:
    assert findings() == []


def test_the_doctor_tells_each_agent_that_may_be_asked(programs: Path) -> None:
    run("setup")
    claude(programs, logged_in=True)
    program(programs, "opencode", {"--version": "1.18.33", "auth list": "0 credentials"})
    found = {finding.message.split()[0].strip(":"): finding for finding in findings()}
    assert (found["claude"].grade, found["claude"].fix) == ("ok", None)
    assert (found["opencode"].grade, found["opencode"].fix) == ("warning", "run `opencode auth login`")
    assert (found["copilot"].grade, found["copilot"].fix) == ("note", "npm install -g @github/copilot")
    assert "antigravity" not in found


def test_the_doctor_warns_when_nobody_can_be_asked(programs: Path) -> None:
    run("setup")
    claude(programs, logged_in=False)
    assert [finding.grade for finding in findings()][-1] == "warning"
    assert "nobody can be asked" in findings()[-1].message
