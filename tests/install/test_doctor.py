"""The doctor: finds what is wrong, says what to do, and repairs what is safe to repair."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import old_bubblewrap
from baton.codex.binary import find_codex
from baton.contract.catalogue import ModelEntry
from baton.install import check_files, check_machine, check_server
from baton.install.findings import Finding, Grade
from baton.install.owned import read_owned
from baton.install.plugin import CodexCommands
from baton.install.surroundings import Codex
from baton.simulate import workers
from baton.simulate.model_server import ScriptedModel
from codex.place import Ground
from install.home import AGENT, PRESETS, Home
from install.machine import Machine, make_machine


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture
def machine(codex_binary: Path, model: ScriptedModel, own_home: Path, test_root: Path) -> Machine:
    return make_machine(codex_binary, model, own_home, test_root)


def examine(machine: Machine, *options: str, status: int = 0) -> dict[str, Any]:
    said = machine.baton("doctor", "--json", "--from", str(machine.checkout), *options, status=status)
    result: dict[str, Any] = json.loads(said[said.index("{") :].splitlines()[0])
    return result


def told(result: dict[str, Any], check: str) -> list[tuple[str, str]]:
    return [(found["grade"], found["message"]) for found in result["findings"] if found["check"] == check]


@pytest.mark.codex
def test_a_healthy_installation_passes_and_a_damaged_one_is_repaired(machine: Machine) -> None:
    machine.baton("install", "--from", str(machine.checkout))
    (machine.places.bundle / "scripts/serve.sh").unlink()
    result = examine(machine, "--fix")
    assert result["ok"] and any("installed again" in line for line in result["fixed"])
    assert {found["grade"] for found in result["findings"]} <= {"ok", "note"}, result
    ((grade, message),) = told(result, "session")
    assert (grade, "codex exec" in message) == ("ok", True)
    ((grade, message),) = told(result, "server")
    assert grade == "ok" and "first call served" in message
    assert any("CODEX_HOME" in message for _, message in told(result, "environment"))


@pytest.mark.codex
@pytest.mark.long
def test_what_codex_itself_ignores_and_what_does_not_arrive_is_found(machine: Machine) -> None:
    machine.baton("install", "--from", str(machine.checkout))
    (machine.places.home / "agents/odd.toml").write_text(AGENT.format("x") + "no_such_key = 1\n")
    config = machine.config.read_text()
    machine.config.write_text(
        config.replace('wire_api = "responses"', 'wire_api = "responses"\nenv_key = "MY_KEY"')
    )
    machine.env["MY_KEY"] = "secret"
    (machine.project / ".codex" / "agents").mkdir(parents=True)
    result = examine(machine, "--project", str(machine.project), status=1)
    assert any("no_such_key" in message for _, message in told(result, "presets"))
    assert any("MY_KEY does not reach" in message for _, message in told(result, "environment"))
    assert "secret" not in json.dumps(result)
    assert told(result, "trust")[0][0] == "warning"


@pytest.mark.codex
@pytest.mark.long
def test_the_live_task_runs_and_says_what_it_cost(machine: Machine) -> None:
    machine.baton("install", "--from", str(machine.checkout))
    machine.model.on("Write the single word baton", *workers.honest({"answer.txt": "baton\n"}, []))
    result = examine(machine, "--live")
    ((grade, message),) = told(result, "live")
    assert grade == "ok" and "tokens: in" in message
    assert result["live"]["verdict"] == "verified"


def test_misuse_of_the_doctor_has_its_own_status(machine: Machine) -> None:
    assert "no such folder" in machine.baton("doctor", "--project", "/nowhere", status=2)


def findings(home: Home, **options: Any) -> list[Finding]:
    package = home.installer().package
    owned = read_owned(home.places.owned)
    return list(check_files.check_installed(home.places, owned, options.get("config", {}), package, str))


def test_an_interrupted_installation_is_found(home: Home) -> None:
    home.install()
    home.write("baton/journal.json", "{}")
    assert any("cut short" in found.message and found.repair for found in findings(home))


def test_edits_and_deletions_are_told_and_are_no_failure(home: Home) -> None:
    home.install()
    home.write("agents/luna-worker.toml", "mine")
    (home.places.home / "skills/orchestrate-work/SKILL.md").unlink()
    told = findings(home)
    assert {found.grade for found in told} == {Grade.OK, Grade.NOTE}
    assert any("edited by you" in found.message for found in told)
    assert any("--restore" in str(found.fix) for found in told)


def test_another_version_of_program_and_home_is_found(home: Home) -> None:
    home.install()
    package = home.installer("2.0.0").package
    owned = read_owned(home.places.owned)
    told = list(check_files.check_installed(home.places, owned, {}, package, str))
    assert [found.grade for found in told] == [Grade.WARNING] and "--upgrade" in str(told[0].fix)


def test_plugin_and_entry_together_are_found(home: Home) -> None:
    home.install()
    config = {"plugins": {"baton@x": {"enabled": True}}, "mcp_servers": {"baton": {"command": "sh"}}}
    assert any("both the plugin" in found.message for found in findings(home, config=config))


def test_a_stale_copy_of_the_plugin_is_found(home: Home) -> None:
    config = {"plugins": {"baton@x": {"enabled": True}}}
    for name, file in home.installer().package.files().items():
        home.write(f"plugins/cache/x/baton/1.0.0/{name}", file.read_bytes())
    assert [found.grade for found in findings(home, config=config)] == [Grade.OK]
    home.write("plugins/cache/x/baton/1.0.0/scripts/serve.sh", "older")
    (found,) = findings(home, config=config)
    assert found.grade is Grade.WARNING and "scripts/serve.sh" in found.message


def test_presets_that_are_stale_broken_or_name_a_model_that_is_gone_are_found(home: Home) -> None:
    home.install()
    home.write("agents/gone.toml", AGENT.format("x") + 'model = "gpt-0"\n')
    home.write("agents/half.toml", 'name = "half"\n')
    home.write("agents/broken.toml", "name =")
    newer = {**PRESETS, "agents/luna-worker.toml": AGENT.format("for another model")}
    owned = read_owned(home.places.owned)
    models = (ModelEntry(slug="gpt-1-luna"),)
    told = [found.message for found in check_files.check_presets(home.places, owned, newer, models, None)]
    for said in (
        "no model 'gpt-0'",
        "developer_instructions is missing",
        "cannot be read",
        "would be made now",
    ):
        assert any(said in message for message in told), (said, told)


@pytest.mark.parametrize(("level", "grade"), [("trusted", Grade.OK), ("untrusted", Grade.WARNING)])
def test_a_projects_trust_is_read_from_the_nearest_folder(tmp_path: Path, level: str, grade: Grade) -> None:
    inner = tmp_path / "inner"
    (inner / ".codex").mkdir(parents=True)
    config = {"projects": {str(tmp_path.resolve()): {"trust_level": level}}}
    assert check_files.check_trust(inner, config).grade is grade


def test_leftovers_are_named(home: Home) -> None:
    home.write("agents/x.toml.baton-new", "x")
    home.write("baton/kept/1/agents/y.toml", "y")
    home.write("orchestration/scripts/orchestrate.py", "z")
    found = list(check_files.check_leftovers(home.places))
    assert len(found) == 3 and found[-1].fix == "delete what you do not need"
    home.write("orchestration/owned-paths.txt", "orchestration/scripts/orchestrate.py\n")
    assert "--adopt" in str(list(check_files.check_leftovers(home.places))[-1].fix)


def test_a_missing_codex_an_unreadable_config_and_an_old_git_are_failures(
    home: Home, test_root: Path
) -> None:
    nothing = {"PATH": str(test_root), "HOME": str(home.user), "BATON_STATE": str(test_root / "state")}
    assert check_machine.check_git(nothing).grade is Grade.FAILURE
    nothing["BATON_CODEX_BIN"] = "/nowhere/codex"
    state, found = check_machine.check_state(nothing)
    assert found.grade is Grade.OK and state is not None
    codex, told = check_machine.check_codex(nothing, home.places, state)
    assert codex is None and told[0].grade is Grade.FAILURE and "/nowhere/codex" in told[0].message
    assert told[0].fix == "name another program in BATON_CODEX_BIN, or unset it"
    home.write("baton/policy.toml", "[root]\nmode = 3\n")
    policy, found = check_machine.check_policy(home.places, None)
    assert policy is None and found.grade is Grade.FAILURE


@pytest.mark.codex
def test_a_bubblewrap_that_is_too_old_is_named_with_what_to_do(codex_binary: Path, test_root: Path) -> None:
    old = old_bubblewrap.install(test_root / "old", codex_binary)
    ground = Ground.make(test_root, find_codex({"BATON_CODEX_BIN": str(codex_binary)}))
    env = {"PATH": f"{old.parent}:{os.defpath}", "HOME": str(test_root)}
    codex = Codex(ground.binary, ground.home, ())
    assert check_machine.check_sandbox(codex, env, ground.state).grade is Grade.OK
    wrapper = test_root / "codex"
    wrapper.write_text(f'#!/bin/sh\nexec {ground.binary.path} "$@"\n')
    wrapper.chmod(0o755)
    alone = replace(codex, binary=replace(codex.binary, path=wrapper))
    found = check_machine.check_sandbox(alone, env, ground.state)
    assert found.grade is Grade.FAILURE and f"{old} is bubblewrap 0.8.0" in found.message
    assert found.fix is not None and "install bubblewrap 0.9 or newer" in found.fix


def test_a_command_that_is_not_on_path_or_is_shadowed_is_found(home: Home, test_root: Path) -> None:
    home.install()
    (found,) = check_machine.check_command(home.places, {"PATH": str(test_root)})
    assert found.grade is Grade.WARNING and "not on PATH" in found.message
    other = test_root / "baton"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    (found,) = check_machine.check_command(home.places, {"PATH": f"{test_root}:{home.places.commands}"})
    assert found.grade is Grade.NOTE and str(other) in found.message


@pytest.mark.codex
def test_a_server_that_does_not_answer_is_a_failure(machine: Machine) -> None:
    commands = CodexCommands(machine.binary, machine.places, machine.env)
    (missing,) = check_server.check_server(commands, machine.places, machine.env)
    assert missing.grade is Grade.FAILURE and "No MCP server" in missing.message
    assert missing.fix == "run `baton install`"
    nowhere = replace(commands, places=replace(machine.places, home=machine.places.home / "nowhere"))
    (homeless,) = check_server.check_server(nowhere, machine.places, machine.env)
    assert homeless.message.endswith(f"the Codex home {nowhere.places.home} does not exist")
    with machine.config.open("a") as file:
        file.write('\n[mcp_servers.baton]\ncommand = "true"\n')
    (silent,) = check_server.check_server(commands, machine.places, machine.env)
    assert silent.grade is Grade.FAILURE and "does not answer" in silent.message
