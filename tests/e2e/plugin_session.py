"""The plugin installed into a real Codex, sessions of it, and a project to work on."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.request import Request
from baton.simulate.script import Javascript, Step, javascript, say

CHECKOUT = Path(__file__).parents[2]

SESSION_SECONDS = 120
"""How long a session may take before a test gives it up."""

WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
CHECK = "python3 check.py"

PROJECT: Mapping[str, str] = {
    "src/calc.py": WRONG,
    "check.py": "import sys\n\nsys.path.insert(0, 'src')\nfrom calc import add\n\nassert add(2, 3) == 5\n",
    "notes.txt": "one\n",
    ".gitignore": "__pycache__/\n",
}


def files_of_a_clone(target: Path) -> Path:
    """A copy of the checkout as a clone with the present changes would be, without `.git`."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=CHECKOUT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        source = CHECKOUT / name
        if source.exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    return target


@dataclass(frozen=True)
class Answer:
    """What one tool call gave back to the supervisor's JavaScript."""

    result: Mapping[str, Any]

    @property
    def failed(self) -> bool:
        return bool(self.result.get("isError"))

    @property
    def text(self) -> str:
        """The text block: what a model that reads no structure sees."""
        return str(self.result["content"][0]["text"])

    def __getitem__(self, key: str) -> Any:
        return self.result["structuredContent"][key]

    def get(self, key: str) -> Any:
        return self.result["structuredContent"].get(key)


@dataclass(frozen=True)
class Installed:
    """A Codex home with the plugin in it, a state folder, and a project whose check fails."""

    binary: Path
    model: ScriptedModel
    root: Path
    env: dict[str, str]
    """What every command and session is started with."""

    @property
    def home(self) -> Path:
        return self.root / "codex-home"

    @property
    def state(self) -> Path:
        return self.root / "baton-state"

    @property
    def workspace(self) -> Path:
        return self.root / "a project"

    @property
    def bundle(self) -> Path:
        """The one copy of the plugin in Codex's cache."""
        (found,) = (self.home / "plugins" / "cache" / "baton" / "baton").iterdir()
        return found

    def codex(self, *arguments: str) -> str:
        """Run a Codex command to its end; its output."""
        done = subprocess.run(
            [self.binary, *arguments],
            cwd=self.workspace,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SESSION_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def session(self, prompt: str, *, writable: bool = True) -> None:
        """One `codex exec` to its end; without `writable` it is read-only, as Codex has it by default."""
        self.codex(*self._exec(writable), prompt)

    @contextmanager
    def started_session(self, prompt: str) -> Iterator[subprocess.Popen[bytes]]:
        """A `codex exec` that goes on while the test does something; killed at the end if it still does."""
        argv = [self.binary, *self._exec(True), prompt]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(
            argv, cwd=self.workspace, env=self.env, stdin=quiet, stdout=quiet, stderr=quiet
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def index(self) -> bytes:
        return (self.workspace / ".git" / "index").read_bytes()

    def content(self) -> dict[str, str]:
        """Every file of the project by its path, git's own aside."""
        return {
            str(path.relative_to(self.workspace)): path.read_text()
            for path in sorted(self.workspace.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.workspace).parts
        }

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=self.workspace, env=self.env, capture_output=True, text=True, check=True
        ).stdout

    def _exec(self, writable: bool) -> Sequence[str]:
        return ("exec", "--json", *(("-s", "workspace-write") if writable else ()))


def install(
    binary: Path, model: ScriptedModel, root: Path, *, built: bool = True, checkout: Path | None = None
) -> Installed:
    """Install the plugin as a person does, from a clean checkout: marketplace, then plugin.

    The full server runs in this test's own Python from the installed copy; with `built` false nothing names
    one, so that the first call builds the environment.
    """
    env = dict(os.environ)
    installed = Installed(binary, model, root, env)
    env |= {"CODEX_HOME": str(installed.home), "BATON_STATE": str(installed.state)}
    write_simulated_home(installed.home, model.port)
    _make_project(installed)
    marketplace = checkout or files_of_a_clone(root / "checkout")
    installed.codex("plugin", "marketplace", "add", str(marketplace))
    installed.codex("plugin", "add", "baton@baton", "--json")
    if built:
        env["BATON_RUNTIME"] = str(_own_python(root / "own-python", installed.bundle / "server"))
    return installed


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder, git's own aside."""
    files = (path for path in folder.rglob("*") if ".git" not in path.relative_to(folder).parts)
    return sum(path.stat().st_size for path in files if path.is_file())


def policy(installed: Installed, text: str) -> None:
    """Write the person's own policy."""
    folder = installed.home / "baton"
    folder.mkdir(exist_ok=True)
    (folder / "policy.toml").write_text(text)


def script(*calls: str) -> Javascript:
    """A supervisor's program: each expression awaited in turn and its value told on a line of its own."""
    lines = [f"text(JSON.stringify({call}));" for call in calls]
    return javascript('// @exec: {"yield_time_ms": 290000}\n' + "\n".join(lines))


def tool(name: str, **arguments: Any) -> str:
    """The expression that calls one of Baton's tools."""
    return f"await tools.mcp__baton__{name}({json.dumps(arguments)})"


TOOL_NAMES = "ALL_TOOLS.map(tool => tool.name).sort()"
"""The expression that names every tool that JavaScript can call, also those a prompt does not show."""


def supervise(model: ScriptedModel, marker: str, *steps: Step) -> None:
    """A session whose prompt contains `marker` takes these steps, then ends."""
    model.on(marker, *steps, say("That is all."))


def told(request: Request) -> list[Any]:
    """The values that the last program told, one a line."""
    return [json.loads(line) for line in request.last_output.splitlines() if line[:1] in ("[", "{", '"')]


def answers(model: ScriptedModel, marker: str, number: int = -1) -> list[Answer]:
    """The answers to the tool calls of a session's program; by default of its last one."""
    request = requests_of(model, marker)[number]
    return [Answer(value) for value in told(request) if isinstance(value, dict)]


def requests_of(model: ScriptedModel, marker: str) -> list[Request]:
    """Every model request of the session or worker whose first input contains `marker`."""
    return [request for request in model.requests if marker in request.text]


def wait_for_state(installed: Installed, state: str, seconds: float = 30.0) -> str:
    """The only run, once it is in `state`; the database is read as it lies there."""
    until = time.monotonic() + seconds
    seen: list[tuple[str, str]] = []
    while time.monotonic() < until:
        with sqlite3.connect(f"file:{installed.state}/baton.sqlite3?mode=ro", uri=True) as database:
            seen = database.execute("select run_id, state from runs").fetchall()
        database.close()
        if seen and seen[0][1] == state:
            return seen[0][0]
        threading.Event().wait(0.05)
    raise AssertionError(f"the run is not {state} after {seconds:g} s: {seen}")


def _own_python(path: Path, server: Path) -> Path:
    """This Python under another name, with the installed package on its path also where it is isolated."""
    variables = f"PYTHONPATH='{server}' PYTHONPYCACHEPREFIX='{path.parent / 'compiled'}'"
    path.write_text(f'#!/bin/sh\n[ "$1" != -I ] || shift\n{variables} exec \'{sys.executable}\' "$@"\n')
    path.chmod(0o755)
    return path


def _make_project(installed: Installed) -> None:
    for name, text in PROJECT.items():
        path = installed.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "A project with a fault"]):
        installed.git(*command)
