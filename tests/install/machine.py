"""A machine with the real Codex, the scripted model and a clone of this repository to install from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.install.places import Places
from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.request import Request
from e2e.plugin_session import TOOL_NAMES, files_of_a_clone, script, supervise, told, tool

SECONDS = 600.0

CALL = tool("inspect_run", runId="none")


@dataclass(frozen=True)
class Machine:
    """A person's machine; nothing is installed yet."""

    binary: Path
    model: ScriptedModel
    user: Path
    checkout: Path
    env: dict[str, str]

    @property
    def places(self) -> Places:
        return Places(self.user / ".codex", self.user / ".local" / "bin")

    @property
    def project(self) -> Path:
        return self.user / "a project"

    @property
    def config(self) -> Path:
        return self.places.config

    def baton(self, *arguments: str, status: int = 0) -> str:
        """Run the command from the checkout, as the installer does; its output and errors."""
        return self.run(sys.executable, "-m", "baton.cli.main", *arguments, status=status)

    def codex(self, *arguments: str, status: int = 0) -> str:
        return self.run(str(self.binary), *arguments, status=status)

    def run(
        self, *argv: str, status: int = 0, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        done = subprocess.run(
            argv,
            cwd=cwd or self.project,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def server(self) -> dict[str, Any]:
        """The server of our name as Codex understands its configuration."""
        found: dict[str, Any] = json.loads(self.codex("mcp", "get", "baton", "--json"))
        return found

    def plugins(self) -> list[str]:
        listed = json.loads(self.codex("plugin", "list", "--json"))
        return [entry["pluginId"] for entry in listed["installed"]]

    def session(self, prompt: str) -> tuple[str, list[str], dict[str, Any]]:
        """One `codex exec` that calls a tool: its first request whole, the tools there are, the answer."""
        supervise(self.model, prompt, script(TOOL_NAMES, CALL))
        # A model whose first request names the agents; others are told of them on demand.
        self.codex("exec", "--json", "--skip-git-repo-check", "-m", "gpt-5.6-sol", prompt)
        requests = [request for request in self.model.requests if prompt in request.text]
        return (*_first(requests), told(requests[-1])[1])

    def runs_from(self, server: Path) -> None:
        """Have every program of Baton's run in this Python, with the package at `server`."""
        wrapper = Path(self.env["BATON_RUNTIME"])
        wrapper.write_text(
            f"#!/bin/sh\n[ \"$1\" != -I ] || shift\nPYTHONPATH='{server}' exec '{sys.executable}' -B \"$@\"\n"
        )
        wrapper.chmod(0o755)


def _first(requests: list[Request]) -> tuple[str, list[str]]:
    names = told(requests[-1])[0]
    return json.dumps(requests[0].body), [name for name in names if name.startswith("mcp__")]


def make_machine(binary: Path, model: ScriptedModel, user: Path, root: Path) -> Machine:
    """A home whose Codex talks to the scripted model, and a clone with the present changes."""
    checkout = files_of_a_clone(root / "checkout")
    env = {
        **os.environ,
        "HOME": str(user),
        "CODEX_HOME": str(user / ".codex"),
        "BATON_CODEX_BIN": str(binary),
        "BATON_RUNTIME": str(root / "own-python"),
        "PYTHONPATH": str(checkout / "server"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": f"{user / '.local' / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    machine = Machine(binary, model, user, checkout, env)
    write_simulated_home(machine.places.home, model.port)
    machine.project.mkdir()
    machine.runs_from(checkout / "server")
    return machine
