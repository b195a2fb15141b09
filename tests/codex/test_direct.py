"""What the sandbox helper can be told by itself, and the dead end that its private network leads to."""

from __future__ import annotations

import errno
import json
import socket
from pathlib import Path

import pytest

from baton.codex.direct import can_be_direct, direct_argv

PLAIN = {":root": "read", "/a": "deny", "/a/b": "write"}


@pytest.mark.parametrize(
    ("table", "env"),
    [
        ({**PLAIN, "/a/**": "deny"}, {}),
        ({**PLAIN, ":workspace_roots": {".": "write"}}, {}),
        ({**PLAIN, ":minimal": "read"}, {}),
        (PLAIN, {"HTTPS_PROXY": "http://proxy.example.org"}),
        (PLAIN, {"http_proxy": ""}),
    ],
)
def test_what_the_helper_cannot_be_told_is_left_to_codex(
    table: dict[str, object], env: dict[str, str]
) -> None:
    assert can_be_direct(PLAIN, {"PATH": "/bin"})
    assert not can_be_direct(table, env)


def test_private_network_leads_to_a_port_that_is_taken_and_never_listens(test_root: Path) -> None:
    started = direct_argv(Path("/bin/true"), test_root, PLAIN, test_root, loopback=True)
    network = json.loads(started.argv[started.argv.index("--managed-network") + 1])
    assert started.env == {"HTTP_PROXY": f"http://127.0.0.1:{network['loopbackPorts'][0]}"}
    address = ("127.0.0.1", network["loopbackPorts"][0])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, 5)
    with pytest.raises(OSError, match="in use") as taken, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(address)
        other.listen()
    assert taken.value.errno == errno.EADDRINUSE


def test_without_a_network_there_is_none_to_be_told(test_root: Path) -> None:
    started = direct_argv(Path("/bin/true"), test_root, PLAIN, test_root, loopback=False)
    profile = json.loads(started.argv[started.argv.index("--permission-profile") + 1])
    assert (profile["network"], started.env) == ("restricted", {})
    assert "--managed-network" not in started.argv
    assert {"path": {"type": "path", "path": "/a"}, "access": "deny"} in profile["file_system"]["entries"]
