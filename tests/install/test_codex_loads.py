"""The real Codex loads what an installation makes of generated config.toml files, at every stage."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from baton.install.config_edit import drop_server, put_server
from install.toml_files import config_files, is_valid

pytestmark = pytest.mark.codex

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]
ONE = {"command": "sh", "args": ["/x/serve.sh"], "env_vars": [f"NAME_{number}" for number in range(9)]}
TWO = {**ONE, "args": ["/y/serve.sh"], "tool_timeout_sec": 300, "default_tools_approval_mode": "approve"}


def load(binary: Path, home: Path, content: bytes) -> list[str] | None:
    """The arguments of our server as Codex reads them, [] where it has none, None where it reads nothing."""
    (home / "config.toml").write_bytes(content)
    done = subprocess.run(
        [binary, "mcp", "list", "--json"],
        env={"CODEX_HOME": str(home), "HOME": str(home.parent), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    if done.returncode != 0:
        return None
    ours = [server for server in json.loads(done.stdout) if server["name"] == "baton"]
    return [argument for server in ours for argument in server["transport"]["args"]]


def check_stages(binary: Path, home: Path, content: bytes) -> None:
    if not is_valid(content) or load(binary, home, content) is None:
        return
    installed = put_server(content, ONE, None, home)
    assert installed.content is not None
    assert load(binary, home, installed.content) == ONE["args"]
    upgraded = put_server(installed.content, TWO, installed.entry, home)
    assert upgraded.content is not None
    assert load(binary, home, upgraded.content) == TWO["args"]
    removed = drop_server(upgraded.content, upgraded.entry, home)
    assert removed.content == content


@settings(max_examples=6, deadline=None, suppress_health_check=SLOW)
@given(content=config_files())
def test_codex_loads_what_is_installed_upgraded_and_removed(
    codex_binary: Path, own_home: Path, content: bytes
) -> None:
    check_stages(codex_binary, own_home / ".codex", content)


@pytest.mark.long
@pytest.mark.timeout(1200)
@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(content=config_files())
def test_codex_loads_a_larger_sample(codex_binary: Path, own_home: Path, content: bytes) -> None:
    check_stages(codex_binary, own_home / ".codex", content)


@pytest.mark.parametrize(
    "content",
    [
        b'model = "gpt-5.5"',
        b'mcp_servers = { other = { command = "x", args = [ "y" , "z" ] } } # inline\n[tui]\n',
        b'mcp_servers.other.command = "x"\r\nmodel = "m"\r\n',
        b'[mcp_servers.other]\ncommand = "x"\n\n[projects."/a b"]\ntrust_level = "trusted"',
    ],
)
def test_codex_finds_both_servers_in_every_form_of_their_table(
    codex_binary: Path, own_home: Path, content: bytes
) -> None:
    home = own_home / ".codex"
    assert load(codex_binary, home, content) == []
    check_stages(codex_binary, home, content)
