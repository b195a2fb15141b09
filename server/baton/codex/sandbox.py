"""Runs a command in Codex's sandbox without a model: the command line, and what its process must see."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from baton.codex.binary import CodexBinary
from baton.codex.bubblewrap import with_bubblewrap
from baton.codex.direct import PROXY_NAMES, can_be_direct, direct_argv
from baton.codex.entries import READ, WRITE, ProfileEntries, network_settings
from baton.codex.home import WorkerHome
from baton.codex.profile import PermissionProfile
from baton.contract.errors import Unsupported

CODEX_NAMES = (
    "CODEX_HOME",
    "CODEX_NETWORK_ALLOW_LOCAL_BINDING",
    "CODEX_NETWORK_PROXY_ACTIVE",
    "CODEX_SANDBOX_NETWORK_DISABLED",
)
"""Variables that Codex adds for its own programs."""


class Network(StrEnum):
    """What a sandboxed command reaches."""

    NONE = "none"
    """Not even loopback; no sockets at all."""
    LOOPBACK = "loopback"
    """A private network with loopback and no way out."""


@dataclass(frozen=True)
class Fence:
    """What a sandboxed command may touch. Paths are absolute and free of links."""

    writable: tuple[Path, ...] = ()
    denied: tuple[Path, ...] = ()
    """Folders and files it may not read; below them only `readable` and `writable` stay visible."""
    readable: tuple[Path, ...] = ()
    denied_globs: tuple[str, ...] = ()
    network: Network = Network.LOOPBACK


@dataclass(frozen=True)
class SandboxedCommand:
    """A command line that runs another one in the sandbox; its exit status is that of the inner one."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Environment of the outer process, which is Codex itself."""
    left_open: tuple[str, ...] = ()
    """Denied folders that had to stay readable, one line each."""


def sandboxed_argv(
    binary: CodexBinary,
    home: WorkerHome,
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    inside: Mapping[str, str],
    fence: Fence,
    direct: bool = False,
) -> SandboxedCommand:
    """The command line that runs `argv` behind `fence`.

    With `direct` the part of Codex that sets the sandbox up is started by itself, as Codex would start it:
    a third cheaper. Only where the probe saw that it makes the same sandbox; what it cannot be told in that
    way is run through the whole of Codex all the same.

    The program sees the variables of `env` and over them those of `inside`. Codex itself, which is not
    sandboxed, sees `env` alone: put there only what the person's own environment says, and into `inside`
    whatever a task or a worktree has a say in (`PATH` with the worktree's programs above all).

    `argv[0]` must be an absolute path of a program that exists: a missing one would end with the sandbox's
    own failure, which cannot be told from the program's. The sandbox of a killed parent lives on, so run this
    under a guard.

    Raises `Unsupported` when a writable path has a name that the sandbox cannot be given.
    """
    entries = ProfileEntries()
    entries.entries[":root"] = READ
    entries.deny((*fence.denied, *home.secrets))
    entries.put((*fence.readable, Path(os.path.realpath(binary.path)).parent), READ)
    entries.put(fence.writable, WRITE)
    entries.deny_globs(fence.denied_globs)
    entries.settle()
    if entries.not_held:
        raise Unsupported(f"the sandbox cannot be set up: {entries.not_held[0]}")
    own = {name: env[name] for name in ("PATH", "TMPDIR") if name in env} | dict(inside)
    drop = (*(name for name in (*PROXY_NAMES, *CODEX_NAMES) if name not in env), "TMPDIR")
    inner = [
        _env_program(),
        *(part for name in drop if name not in own for part in ("-u", name)),
        *(f"{name}={value}" for name, value in own.items()),
        *argv,
    ]
    outer = {**with_bubblewrap(env, binary.path), **home.sandbox_environment}
    left_open = tuple(entries.left_open)
    table = entries.filesystem()
    if direct and can_be_direct(table, env):
        started = direct_argv(
            binary.path,
            Path(home.sandbox_environment["CODEX_HOME"]),
            table,
            cwd,
            fence.network is Network.LOOPBACK,
        )
        return SandboxedCommand((*started.argv, "--", *inner), {**outer, **started.env}, left_open)
    network, features = network_settings(fence.network is Network.LOOPBACK, ())
    name = f"baton-{secrets.token_hex(16)}"
    settings: dict[str, object] = {
        f"permissions.{name}.filesystem": table,
        f"permissions.{name}.network": network,
        **{f"features.{feature}": value for feature, value in features.items()},
    }
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={toml_value(value)}")]
    return SandboxedCommand(
        (str(binary.path), "sandbox", "-P", name, "-C", str(cwd), *options, "--", *inner), outer, left_open
    )


def profile_argv(
    binary: CodexBinary, profile: PermissionProfile, argv: Sequence[str], *, cwd: Path
) -> list[str]:
    """The command line that runs `argv` under a worker's profile, to see whether it can be set up at all.

    Workspace roots that a thread gets by `runtimeWorkspaceRoots` are there besides `cwd`, which is then
    writable too: not for running anything but a trial.
    """
    table: dict[str, object] = {"filesystem": profile.filesystem, "network": profile.network}
    if profile.workspace_roots:
        table["workspace_roots"] = dict.fromkeys(profile.workspace_roots, True)
    settings = {
        **{f"permissions.{profile.name}.{key}": value for key, value in table.items()},
        **{f"features.{feature}": value for feature, value in profile.features.items()},
    }
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={toml_value(value)}")]
    return [str(binary.path), "sandbox", "-P", profile.name, "-C", str(cwd), *options, "--", *argv]


def _env_program() -> str:
    program = shutil.which("env", path="/usr/bin:/bin:/run/current-system/sw/bin")
    if program is None:
        raise Unsupported("the program env is not where every Unix has it (/usr/bin/env)")
    return program


def toml_value(value: object) -> str:
    """A value as TOML on one line. JSON's strings and scalars are TOML's too."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{toml_value(str(key))} = {toml_value(item)}" for key, item in value.items())
            + "}"
        )
    # TOML has no escape for DEL and refuses it bare.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
