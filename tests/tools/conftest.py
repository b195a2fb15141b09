"""The front as a plugin cache holds it, and a full server with a fake service behind it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.client import Client

CHECKOUT = Path(__file__).parents[2]
FAKE_SERVER = Path(__file__).with_name("fake_server.py")

StartClient = Callable[..., Client]


@pytest.fixture
def plugin(test_root: Path) -> Path:
    """A copy of what the plugin cache needs."""
    target = test_root / "plugin"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("server", "scripts", ".codex-plugin", "policy", "skills", "agents"):
        shutil.copytree(CHECKOUT / name, target / name, ignore=ignored)
    for name in (".mcp.json", "requirements.lock"):
        shutil.copy(CHECKOUT / name, target / name)
    return target


@pytest.fixture
def fake_runtime(test_root: Path) -> Path:
    """An executable to name in BATON_RUNTIME: starts the server with the fake service."""
    script = test_root / "fake-python"
    path = f"{CHECKOUT / 'server'}:{CHECKOUT / 'tests'}"
    script.write_text(f"#!/bin/sh\nPYTHONPATH='{path}' exec '{sys.executable}' -B '{FAKE_SERVER}'\n")
    script.chmod(0o755)
    return script


@pytest.fixture
def start_front(plugin: Path, fake_runtime: Path) -> StartClient:
    """Start the front like Codex does; further variables by keyword, None leaves one out."""

    def start(**variables: str | None) -> Client:
        env = dict(os.environ)
        env.update({"BATON_RUNTIME": str(fake_runtime)})
        for name, value in variables.items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = value
        return Client(["sh", "scripts/serve.sh"], cwd=plugin, env=env)

    return start


@pytest.fixture
def start_server(fake_runtime: Path, test_root: Path) -> StartClient:
    """Start the full server without the front."""

    def start(**variables: str) -> Client:
        return Client([str(fake_runtime)], cwd=test_root, env={**os.environ, **variables})

    return start
