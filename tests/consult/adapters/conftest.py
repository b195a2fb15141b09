"""A house, and a way to put one question to an agent in it."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from baton.consult.adapters import adapter_of
from baton.consult.adapters.protocol import Agent, Exit, Places, Progress, Question, Reply, Runtime
from baton.consult.run import ask
from baton.engine.house import House
from baton.simulate.service import KEY, ScriptedService

NAMED = os.environ.get("BATON_TEST_CLIS")
"""A folder with the real command lines, looked at before PATH."""

_PROGRAMS = {Runtime.CLAUDE: "claude", Runtime.OPENCODE: "opencode", Runtime.COPILOT: "copilot"}

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@dataclass(frozen=True)
class Desk:
    """A person's machine from which agents are asked."""

    house: House
    root: Path

    def with_env(self, **changes: str) -> Desk:
        """The same in other surroundings."""
        return replace(self, house=replace(self.house, env={**self.house.env, **changes}))

    def without_env(self, *names: str) -> Desk:
        kept = {name: value for name, value in self.house.env.items() if name not in names}
        return replace(self, house=replace(self.house, env=kept))

    def places(self) -> Places:
        """Places of a fresh question."""
        scratch = self.root / f"question-{next(_numbers)}"
        scratch.mkdir(parents=True)
        return Places(self.house, scratch, scratch / "stdout", scratch / "stderr")

    def ask(
        self, agent: Agent, question: Question, places: Places | None = None, adapter: Any = None
    ) -> Reply:
        """What comes of a question."""
        adapter = adapter or adapter_of(agent.runtime)

        async def put() -> Reply:
            return await ask(adapter, agent, question, places or self.places(), self.told.append)

        return anyio.run(put)

    @property
    def told(self) -> list[Progress]:
        return _told

    def read(self, agent: Agent, question: Question, stdout: bytes, stderr: bytes, code: int) -> Reply:
        """What an adapter reads from what a program printed."""
        places = self.places()
        places.stdout.write_bytes(stdout)
        places.stderr.write_bytes(stderr)
        adapter: Any = adapter_of(agent.runtime)
        reply: Reply = adapter.read(agent, question, places, Exit(code))
        return reply


_numbers = itertools.count(1)
_told: list[Progress] = []


@pytest.fixture
def desk(test_root: Path, own_home: Path) -> Iterator[Desk]:
    _told.clear()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(own_home),
        "CODEX_HOME": os.environ["CODEX_HOME"],
        "BATON_STATE": os.environ["BATON_STATE"],
        "NO_PROXY": "127.0.0.1,localhost",
    }
    with House.open(env) as house:
        yield Desk(house, test_root)


def question(prompt: str = "What is 2+2?", **more: Any) -> Question:
    return Question(
        **{"prompt": prompt, "cwd": Path("/"), "timeout_seconds": 120.0, "idle_seconds": 60.0, **more}
    )


def real(runtime: Runtime) -> str:
    """The real command line; skips the test, saying so, where it is absent."""
    name = _PROGRAMS[runtime]
    path = os.pathsep.join(filter(None, (NAMED, os.environ["PATH"])))
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(
            f"the real {name} is not installed: put it on PATH, or name its folder in BATON_TEST_CLIS"
        )
    return found


def agent_at(runtime: Runtime, service: ScriptedService, command: str) -> tuple[Agent, Mapping[str, str]]:
    """An agent whose command line asks the scripted service, and the variables that make it."""
    if runtime is Runtime.CLAUDE:
        env = {"ANTHROPIC_BASE_URL": service.root, "ANTHROPIC_API_KEY": f"sk-ant-{KEY}"}
        return Agent("claude", runtime, command, "claude-sonnet-5", "low"), env
    if runtime is Runtime.OPENCODE:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": service.url, "apiKey": "{env:SIMULATED_API_KEY}"},
            "models": {
                "m1": {"limit": {"context": 100000, "output": 8000}, "cost": {"input": 1, "output": 2}}
            },
        }
        agent = Agent("opencode", runtime, command, "simulated/m1", extra={"provider": provider})
        return agent, {"SIMULATED_API_KEY": KEY}
    env = {
        "COPILOT_PROVIDER_BASE_URL": service.url,
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_OFFLINE": "true",
        # What it unpacks at its first start, shared by all homes.
        "XDG_CACHE_HOME": str(CACHE),
    }
    return Agent("copilot", runtime, command, "simulated-1"), env


@pytest.fixture
def script(test_root: Path) -> Callable[[str, str], str]:
    """A fake program of the given name, for what the real one cannot be made to do; its body is Python."""

    def write(name: str, body: str) -> str:
        folder = test_root / f"bin-{next(_numbers)}"
        folder.mkdir()
        path = folder / name
        path.write_text(f"#!{sys.executable} -IS\n{body}\n")
        path.chmod(0o755)
        return str(path)

    return write
