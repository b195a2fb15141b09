"""Finds out by doing whether Codex's sandbox holds on this machine."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import anyio.to_thread

from baton.codex.binary import CodexBinary
from baton.codex.bubblewrap import outdated, used_bubblewrap, with_bubblewrap
from baton.codex.home import WorkerHome
from baton.codex.profile import PermissionProfile
from baton.codex.sandbox import Fence, Network, profile_argv, sandboxed_argv
from baton.codex.version_cache import identity
from baton.contract.errors import BatonError
from baton.ledger.locks import FileLock
from baton.process import tree
from baton.process.child import run

SECONDS = 20.0
"""How long one trial may take; it takes a tenth of a second."""

LOCK_SECONDS = 60.0

_ATTEMPTS = """
import hashlib, os, socket, sys
inside, outside, secret, port, server = sys.argv[1:]
def attempt(name, action):
    try:
        action()
    except Exception:
        return
    print(name, flush=True)
def write(path):
    with open(path, "w") as file:
        file.write("x")
def settings():
    with open("/proc/sys/fs/lease-break-time", "r+") as file:
        value = file.read()
        file.seek(0)
        file.write(value)
def listen():
    with socket.create_server(("127.0.0.1", 0)) as own:
        socket.create_connection(own.getsockname(), 5).close()
def refused(family):
    try:
        socket.socket(family).close()
    except OSError as error:
        return error.errno
def mounted(line):
    before, _, after = line.partition(" - ")
    return before.split()[3:6] + after.split()
def seen():
    with open("/proc/self/mountinfo") as file:
        yield from (mounted(line) for line in file)
    with open("/proc/self/status") as file:
        yield from (line for line in file if line.startswith(("Cap", "NoNewPrivs", "Seccomp", "Uid", "Gid")))
    yield from ((family, refused(family)) for family in range(48))
    yield sorted(os.environ)
print("started", flush=True)
print("view-" + hashlib.sha256(repr(list(seen())).encode()).hexdigest(), flush=True)
attempt("inside", lambda: write(inside))
attempt("outside", lambda: write(outside))
attempt("secret", lambda: open(secret).read())
attempt("settings", settings)
attempt("called", lambda: socket.create_connection(("127.0.0.1", int(port)), 5).close())
attempt("loopback", listen)
"""


@dataclass(frozen=True)
class Probe:
    """What the sandbox was seen to do."""

    runs: bool
    """A command runs in it at all and can write where it may."""
    prevents: bool
    """It runs, and writing outside, reading what is denied and connecting out all failed."""
    loopback: bool
    """Its private network has a loopback and no way out."""
    direct: bool
    """Codex's sandbox helper by itself makes the very same sandbox, seen from inside."""
    why: str | None
    """One line on what is wrong; None when all is well."""


async def probe(binary: CodexBinary, home: WorkerHome, *, cache: Path, env: Mapping[str, str]) -> Probe:
    """Try the sandbox: a write inside, a write outside, a denied read, a connection to a listener of ours.

    The result is kept in the folder `cache` for this boot, this Codex program, the bubblewrap it uses and
    this user, so the second call costs a file read. Processes that ask at once wait for the first. `env` is a
    minimal environment for the commands. Never raises for what the sandbox does; a machine where it does not
    work has `runs` False, and every command that a worker tries there fails.
    """
    file = cache / "sandbox-probe.json"
    key = await anyio.to_thread.run_sync(_key, binary, env)
    known = _load(file, key)
    if known is not None:
        return known
    lock = FileLock(cache / "sandbox-probe.lock")
    await anyio.to_thread.run_sync(lock.acquire, LOCK_SECONDS)
    try:
        known = _load(file, key)
        if known is None:
            known = await _try(binary, home, cache, env)
            _store(file, key, known)
    finally:
        lock.release()
    return known


async def try_profile(
    binary: CodexBinary, home: WorkerHome, profile: PermissionProfile, *, cwd: Path, env: Mapping[str, str]
) -> str | None:
    """Why no command runs under a worker's profile, in one line; None when one does (about 50 ms).

    A profile that cannot be set up fails closed: every command of the worker fails while its turns complete.
    """
    argv = profile_argv(binary, profile, ["/bin/sh", "-c", "echo started"], cwd=cwd)
    try:
        led = await anyio.to_thread.run_sync(with_bubblewrap, env, binary.path)
        started, error = await _observe(argv, {**led, **home.sandbox_environment}, cwd)
    except OSError as failure:
        return f"the sandbox cannot be tried: {failure}"
    return None if "started" in started else f"the sandbox runs no command: {error or 'no output'}"


def forget(cache: Path) -> None:
    """Have the next call try again."""
    (cache / "sandbox-probe.json").unlink(missing_ok=True)


async def _try(binary: CodexBinary, home: WorkerHome, cache: Path, env: Mapping[str, str]) -> Probe:
    folder = Path(tempfile.mkdtemp(dir=cache, prefix="probe-"))
    try:
        strict, strict_error = await _trial(binary, home, folder, env, Network.NONE)
        open_, _ = await _trial(binary, home, folder, env, Network.LOOPBACK)
        alike = [
            (await _trial(binary, home, folder, env, network, direct=True))[0] == found
            for network, found in ((Network.NONE, strict), (Network.LOOPBACK, open_))
        ]
    except (BatonError, OSError) as error:
        why = f"the sandbox cannot be tried: {error}"
        return Probe(runs=False, prevents=False, loopback=False, direct=False, why=why)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = judge(strict, open_, strict_error, alike=all(alike))
    if found.runs:
        return found
    return replace(found, why=await anyio.to_thread.run_sync(outdated, env, binary.path) or found.why)


def judge(strict: frozenset[str], private: frozenset[str], error: str, *, alike: bool = False) -> Probe:
    """Conclude from what succeeded without a network and with a private one.

    `alike` says that the same was seen, word for word, where the sandbox was set up directly.
    """
    escapes = {
        "outside": "a command can write outside its scope",
        "secret": "a command can read what is denied",
        "out": "a command can reach the network",
        "settings": "a command can change the kernel's settings, because Codex runs as root",
    }
    if "started" not in strict:
        why = f"the sandbox runs no command at all: {error or 'no output'}"
        return Probe(runs=False, prevents=False, loopback=False, direct=False, why=why)
    escaped = [text for name, text in escapes.items() if name in strict]
    if "inside" not in strict:
        escaped.append("a command cannot write inside its scope")
    fence_holds = not (private & escapes.keys())
    loopback = {"started", "inside", "loopback"} <= private and fence_holds
    wrong: str | None = f"the sandbox does not hold: {'; '.join(escaped)}" if escaped else None
    if wrong is None and not loopback:
        wrong = "checks have no loopback: the sandbox gives no private network here"
    direct = alike and loopback and not escaped
    return Probe(runs="inside" in strict, prevents=not escaped, loopback=loopback, direct=direct, why=wrong)


async def _trial(
    binary: CodexBinary,
    home: WorkerHome,
    folder: Path,
    env: Mapping[str, str],
    network: Network,
    *,
    direct: bool = False,
) -> tuple[frozenset[str], str]:
    inside, outside, secret = folder / "inside", folder / "outside", folder / "secret"
    for each in (inside, outside, secret):
        each.mkdir(exist_ok=True)
    (secret / "file").write_text("secret", encoding="ascii")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        argv = [os.path.realpath(sys.executable), "-I", "-S", "-c", _ATTEMPTS]
        argv += [str(inside / "x"), str(outside / "x"), str(secret / "file")]
        argv += [str(listener.getsockname()[1]), secrets.token_hex(4)]
        fence = Fence(writable=(inside,), denied=(secret,), network=network, readable=_interpreter())
        command = sandboxed_argv(
            binary, home, argv, cwd=inside, env=env, inside={}, fence=fence, direct=direct
        )
        seen, error = await _observe(command.argv, command.env, inside)
        return (seen | {"out"} if _was_reached(listener) else seen), error


def _was_reached(listener: socket.socket) -> bool:
    """Asked of our end: within a private network a port of the same number may well be open."""
    listener.setblocking(False)
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


async def _observe(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> tuple[frozenset[str], str]:
    done = await run(argv, cwd=cwd, env=env, timeout=SECONDS, errors_apart=True)
    said = done.errors.decode("utf-8", "replace").strip().splitlines()
    lines = [line for line in said if not line.startswith("WARNING")]
    error = lines[0][:300] if lines else "it took too long" if done.timed_out else ""
    return frozenset(done.output.decode("ascii", "replace").split()), error


def _interpreter() -> tuple[Path, ...]:
    """Where the interpreter keeps its library: it may lie below a denied folder."""
    return (Path(os.path.realpath(sys.base_prefix)),)


def _key(binary: CodexBinary, env: Mapping[str, str]) -> str:
    program = f"{binary.version} {binary.path} {identity(binary.path)}"
    return f"{tree.boot_id()} {os.geteuid()} {program} {used_bubblewrap(env, binary.path)}"


def _load(file: Path, key: str) -> Probe | None:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        kept = data["probe"]
        if data["key"] != key or set(kept) != {each.name for each in fields(Probe)}:
            return None
        return Probe(**kept)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _store(file: Path, key: str, found: Probe) -> None:
    fresh = file.with_suffix(f".{secrets.token_hex(4)}")
    try:
        fresh.write_text(json.dumps({"key": key, "probe": asdict(found)}), encoding="utf-8")
        fresh.replace(file)
    except OSError:
        # It will be tried again: slower, never wrong.
        fresh.unlink(missing_ok=True)
