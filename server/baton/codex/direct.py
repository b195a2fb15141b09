"""Starts the part of Codex that sets up its sandbox by itself, the way Codex starts it.

It is Codex's own program under another name, with the profile as JSON. What that looks like is Codex's affair
and may change: the probe compares the sandbox made in this way with the one of `codex sandbox`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

HELPER = "codex-linux-sandbox"
"""The name under which Codex's program is its sandbox helper."""

_PLAIN_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "ws_proxy", "wss_proxy")

PROXY_NAMES = (
    *_PLAIN_PROXIES,
    *(name.upper() for name in _PLAIN_PROXIES),
    *("npm_config_proxy", "npm_config_http_proxy", "npm_config_https_proxy", "npm_config_noproxy"),
    *("NPM_CONFIG_PROXY", "NPM_CONFIG_HTTP_PROXY", "NPM_CONFIG_HTTPS_PROXY", "NPM_CONFIG_NOPROXY"),
    *("YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "PIP_PROXY", "NODE_USE_ENV_PROXY", "ELECTRON_GET_USE_PROXY"),
    *("BUNDLE_HTTP_PROXY", "BUNDLE_HTTPS_PROXY", "BUNDLE_NO_PROXY"),
    *("DOCKER_HTTP_PROXY", "DOCKER_HTTPS_PROXY"),
)
"""Variables by which Codex points programs to its proxy. Requests to loopback would go there too and be
refused: without these a program reaches its own local server directly."""


@dataclass(frozen=True)
class Helper:
    """How the helper is started, up to what it is to run."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Variables to add."""


def can_be_direct(filesystem: Mapping[str, object], env: Mapping[str, str]) -> bool:
    """Whether the helper can be told this table: plain paths alone, and no proxy of the person's own."""
    plain = all(
        isinstance(access, str)
        and (path == ":root" or (path.startswith("/") and not set(path) & set("*?[]")))
        for path, access in filesystem.items()
    )
    return plain and not any(name in env for name in PROXY_NAMES)


def direct_argv(
    binary: Path, folder: Path, filesystem: Mapping[str, object], cwd: Path, loopback: bool
) -> Helper:
    """The helper's command line for a table that `can_be_direct`.

    `folder` is where the program's other name is kept. With `loopback` there is a private network with
    loopback and no way out: the proxy that Codex would offer in it is a port of ours at which nobody listens.
    Raises `OSError` when the name cannot be made.
    """
    entries = [{"path": _path(path), "access": access} for path, access in filesystem.items()]
    profile = {
        "type": "managed",
        "file_system": {"type": "restricted", "entries": entries},
        "network": "enabled" if loopback else "restricted",
    }
    argv = [str(_named(binary, folder)), "--sandbox-policy-cwd", str(cwd), "--command-cwd", str(cwd)]
    argv += ["--permission-profile", json.dumps(profile)]
    if not loopback:
        return Helper(tuple(argv), {})
    port = _dead_end().getsockname()[1]
    network = {
        "loopbackPorts": [port],
        "allowLocalBinding": False,
        "allowUnixSockets": [],
        "dangerouslyAllowAllUnixSockets": False,
    }
    return Helper(
        (*argv, "--managed-network", json.dumps(network)), {"HTTP_PROXY": f"http://127.0.0.1:{port}"}
    )


def _path(path: str) -> Mapping[str, object]:
    if path == ":root":
        return {"type": "special", "value": {"kind": "root"}}
    return {"type": "path", "path": path}


@functools.cache
def _dead_end() -> socket.socket:
    """A port of this machine's loopback that is taken for the life of this process and never listens."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    return taken


@functools.cache
def _named(binary: Path, folder: Path) -> Path:
    real = os.path.realpath(binary)
    link = folder / hashlib.sha256(os.fsencode(real)).hexdigest()[:16] / HELPER
    link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        link.symlink_to(real)
    return link
