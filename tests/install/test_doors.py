"""The doors as a person uses them: the script, the command on PATH, and where neither can work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.cli import main
from baton.simulate.model_server import ScriptedModel
from install.home import picture
from install.machine import Machine, make_machine


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture
def machine(codex_binary: Path, model: ScriptedModel, own_home: Path, test_root: Path) -> Machine:
    made = make_machine(codex_binary, model, own_home, test_root)
    made.env.pop("PYTHONPATH")
    return made


def door(machine: Machine, *arguments: str, status: int = 0, **env: str) -> str:
    script = machine.checkout / "scripts" / "install-personal.sh"
    return machine.run("sh", str(script), *arguments, status=status, env=env)


def test_the_script_installs_and_the_command_works_from_anywhere_without_the_checkout(
    machine: Machine, test_root: Path
) -> None:
    before = picture(machine.user)
    assert "would change" in door(machine, "--dry-run")
    assert picture(machine.user) == before
    assert "files changed" in door(machine)
    machine.runs_from(machine.places.bundle / "server")
    shutil.rmtree(machine.checkout)
    elsewhere = test_root / "else where"
    elsewhere.mkdir()
    said = machine.run("baton", "status", cwd=elsewhere)
    assert f"in {machine.places.home}" in said and "by config.toml" in said
    link = machine.user / "linked"
    link.symlink_to(machine.places.command)
    assert "luna-worker" in machine.run(str(link), "agents", cwd=elsewhere)
    link.unlink()
    command = machine.places.command.read_bytes()
    machine.run("baton", "uninstall", cwd=elsewhere)
    after = {name for name in picture(machine.user) if not name.startswith(".codex/tmp")}
    assert after == {name for name in before if not name.startswith(".codex/tmp")}
    orphan = machine.user / "orphan"
    orphan.write_bytes(command)
    said = machine.run("sh", str(orphan), "--version", status=1)
    assert "nothing is installed" in said and said.count("\n") == 1


@pytest.mark.long
def test_the_script_takes_its_uninstall_option(machine: Machine) -> None:
    before = machine.config.read_bytes()
    door(machine, "--no-config")
    door(machine, "--uninstall")
    assert machine.config.read_bytes() == before
    assert not machine.places.own.exists() and not machine.places.command.exists()
    assert "nothing of Baton's is recorded" in door(machine, "--uninstall", status=1)


@pytest.mark.parametrize("words", [("--uninstall",), ("--uninstall", "--project", "."), ("uninstall",)])
def test_uninstalling_where_nothing_is_installed_builds_nothing(
    machine: Machine, words: tuple[str, ...]
) -> None:
    machine.env.pop("BATON_RUNTIME")
    before = picture(machine.user)
    script = machine.checkout / "scripts" / "install-personal.sh"
    program = [str(script.with_name("program.sh")), "baton"] if words == ("uninstall",) else [str(script)]
    said = machine.run("sh", *program, *words, status=1)
    assert said == f"baton: nothing of Baton's is recorded in {machine.places.home}\n"
    assert picture(machine.user) == before
    assert not Path(machine.env["BATON_STATE"]).exists()


def test_a_misspelt_option_is_misuse(machine: Machine) -> None:
    assert "--upgrad" in door(machine, "--upgrad", status=2)


@pytest.mark.parametrize("system", ["MINGW64_NT-10.0", "CYGWIN_NT-10.0"])
def test_windows_is_refused_in_one_line(machine: Machine, test_root: Path, system: str) -> None:
    fake = test_root / "bin"
    fake.mkdir()
    (fake / "uname").write_text(f"#!/bin/sh\necho {system}\n")
    (fake / "uname").chmod(0o755)
    said = door(machine, status=1, PATH=f"{fake}{os.pathsep}{os.environ['PATH']}")
    assert "Windows is not supported" in said and said.count("\n") == 1


def test_the_program_itself_refuses_windows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match="Windows is not supported"):
        main.main()


def test_without_a_fitting_python_there_is_one_line(machine: Machine, test_root: Path) -> None:
    tools = test_root / "tools"
    tools.mkdir()
    for name in ("sh", "dirname", "uname"):
        (tools / name).symlink_to(str(shutil.which(name)))
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3").chmod(0o755)
    script = (machine.checkout / "scripts" / "program.sh").read_text()
    for place in ("/usr/local/bin/python3", "/opt/homebrew/bin/python3"):
        script = script.replace(place, "/nowhere/python3")
    (machine.checkout / "scripts" / "program.sh").write_text(script)
    said = door(machine, status=1, PATH=str(tools))
    assert "Python 3.11 to 3.14 is needed" in said and said.count("\n") == 1


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_with_nothing_built_the_script_builds_installs_and_serves(machine: Machine) -> None:
    machine.env.pop("BATON_RUNTIME")
    door(machine)
    shutil.rmtree(machine.checkout)
    found = subprocess.run(
        ["grep", "-rlF", "--include=*", str(machine.checkout), str(machine.user)],
        capture_output=True,
        text=True,
    )
    assert found.stdout == "", "an installation must not lean on the checkout"
    assert "baton, version" in machine.run("baton", "--version")
    _, tools, answer = machine.session("Look into it")
    assert "mcp__baton__delegate_task" in tools
    assert answer["structuredContent"]["error"] == "not_found"
    machine.run("baton", "uninstall", "--purge")
    assert not Path(machine.env["BATON_STATE"]).exists()
