"""The builder: makes one environment, detached from whoever asked for it, and marks it ready at the very end.

Run as `python -I -S build.py RUNTIME KEY ROOT PYTHON`; prints its log. Exit status 0 when the environment is
ready, 1 when it failed (the reason is in the failure note), 75 when somebody else is at it.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from baton.contract.errors import BatonError, StateUnavailable, Unsupported
from baton.runtime.errors import RuntimeUnavailable
from baton.runtime.path_file import path_file
from baton.runtime.places import Environment, bundle_files, unwritable
from baton.runtime.use import try_own

BUSY = 75
NEEDED_BYTES = 300 * 1024 * 1024
"""Free space that a build needs; asked beforehand, since installers say it badly."""

PROGRAMS = {
    "baton": "baton.cli.main",
    "baton-server": "baton.tools.server",
    "baton-runner": "baton.engine.runner",
    "baton-guard": "baton.process.guard",
}

# Set by a person for their own projects; here they would send packages elsewhere.
_MISLEADING = (
    "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX",
    "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PIP_DRY_RUN",
    "UV_PROJECT_ENVIRONMENT", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_TARGET", "UV_PREFIX",
)  # fmt: skip

_NETWORK = re.compile(
    r"name resolution|resolve host|getaddrinfo|connection (?:error|refused|reset|timed out|broken)|"
    r"failed to establish|network is unreachable|newconnectionerror|proxyerror|sslerror|"
    r"dns error|error sending request|failed to fetch|timed out|"
    r"could not find a version|no matching distribution|not found in the package registry|no solution found",
    re.IGNORECASE,
)
_SPACE = re.compile(r"no space left|errno 28|disk quota|errno 122|os error 28", re.IGNORECASE)
_READ_ONLY = re.compile(r"read-only file system|errno 30|permission denied|errno 13", re.IGNORECASE)
_NO_VENV = re.compile(r"ensurepip is not available|no module named (?:venv|ensurepip|pip)", re.IGNORECASE)


def build(environment: Environment, root: str, python: str) -> None:
    """Build `environment` from the bundle at `root`. The caller owns its lock.

    Raises `BatonError` with one line for what a person can mend; what was built by then is without a marker
    and will be removed by the next build.
    """
    try:
        free = shutil.disk_usage(environment.runtime).free
        if free < NEEDED_BYTES:
            raise StateUnavailable(
                f"not enough space for Baton's environment: {free // 1_000_000} MB free in "
                f"{environment.runtime}, {NEEDED_BYTES // 1_000_000} MB needed"
            )
        if os.path.lexists(environment.root):
            shutil.rmtree(environment.root)
        _copy_bundle(root, environment.bundle)
        _install(environment, python)
        _point_at_bundle(environment)
        _write_launchers(environment)
        _try(environment)
        _mark(environment)
    except OSError as error:
        raise unwritable(environment.runtime, error) from None


def main(arguments: list[str]) -> int:
    """Build under the lock; leave a note of why it failed."""
    runtime, key, root, python = arguments
    environment = Environment(runtime, key)
    lock = _own(environment)
    if lock is None:
        return BUSY
    if environment.ready():
        return 0
    started = time.time()
    _empty_log(environment)
    try:
        if os.path.exists(environment.failure):
            os.unlink(environment.failure)
        build(environment, root, python)
    except BatonError as error:
        print(f"failed: {error.message}", flush=True)
        _note_failure(environment, error)
        return 1
    print("ready after %.1f s" % (time.time() - started), flush=True)
    return 0


def _own(environment: Environment) -> int | None:
    """The lock, tried for a moment: whoever looks whether the environment is ready holds it that long."""
    for _ in range(40):
        lock = try_own(environment)
        if lock is not None:
            return lock
        time.sleep(0.05)
    return None


def _empty_log(environment: Environment) -> None:
    if os.path.exists(environment.log):
        os.truncate(environment.log, 0)


def _copy_bundle(root: str, target: str) -> None:
    for name in bundle_files(root):
        destination = os.path.join(target, name)
        os.makedirs(os.path.dirname(destination), mode=0o700, exist_ok=True)
        shutil.copyfile(os.path.join(root, name), destination)


def _install(environment: Environment, python: str) -> None:
    """Make the virtual environment with uv where it is, else, or when that fails, with venv and pip."""
    lock = os.path.join(environment.bundle, "requirements.lock")
    uv = shutil.which("uv") or shutil.which("uv", path=os.path.expanduser("~/.local/bin:~/.cargo/bin"))
    if uv is not None:
        try:
            _run([uv, "venv", "--no-config", "--python", python, environment.venv])
            _run(
                [
                    uv,
                    "pip",
                    "install",
                    "--python",
                    environment.python,
                    "--compile-bytecode",
                    "--require-hashes",
                    "-r",
                    lock,
                ]
            )
            return
        except RuntimeUnavailable as error:
            # uv does not read pip's configuration, where a mirror may be named.
            print(f"uv: {error.message}; trying pip", flush=True)
            shutil.rmtree(environment.venv, ignore_errors=True)
    _run([python, "-I", "-m", "venv", environment.venv])
    _run(
        [
            environment.python,
            "-I",
            "-m",
            "pip",
            "install",
            "--no-input",
            "--disable-pip-version-check",
            "--retries",
            "2",
            "--require-hashes",
            "-r",
            lock,
        ]
    )


def _run(argv: list[str]) -> None:
    print("$ " + " ".join(argv), flush=True)
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_installer_environment(),
        cwd="/",
    )
    said = done.stdout.decode("utf-8", "replace")
    print(said, flush=True)
    if done.returncode != 0:
        raise explain(said, argv[0])


def _installer_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _MISLEADING}


def explain(said: str, program: str) -> BatonError:
    """What an installer's output means, as one line for a person."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()] or lines or ["no output"]
    last = errors[-1][:200]
    if _SPACE.search(said):
        return StateUnavailable(f"no space left while building Baton's environment: {last}")
    if _NO_VENV.search(said):
        return Unsupported(
            f"this Python cannot make virtual environments ({program}): install its venv package "
            "(python3-venv on Debian and Ubuntu) or uv, and call again"
        )
    if _READ_ONLY.search(said):
        return StateUnavailable(f"Baton's environment cannot be written: {last}")
    if _NETWORK.search(said):
        return RuntimeUnavailable(
            "Baton's packages could not be fetched: no network, or the package index is unreachable or lacks "
            f"them ({last}): check the connection, the proxy and the pip or uv settings, and call again"
        )
    return RuntimeUnavailable(f"Baton's environment could not be built: {last}")


def _point_at_bundle(environment: Environment) -> None:
    """Make the copied package importable, and compile it once for all."""
    server = os.path.join(environment.bundle, "server")
    for site in glob.glob(os.path.join(environment.venv, "lib", "python*", "site-packages")):
        with open(os.path.join(site, "baton.pth"), "w", encoding="ascii") as file:
            file.write(path_file(server))
    _run([environment.python, "-I", "-m", "compileall", "-q", server])


def _write_launchers(environment: Environment) -> None:
    os.makedirs(environment.bin, mode=0o700, exist_ok=True)
    for name, module in PROGRAMS.items():
        path = os.path.join(environment.bin, name)
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f'#!/bin/sh\nexec {_quoted(environment.python)} -I -m {module} "$@"\n')
        os.chmod(path, 0o700)


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"


def _try(environment: Environment) -> None:
    """Import what every program needs: a package that cannot be loaded here must not pass as ready."""
    _run([environment.python, "-I", "-c", "import baton.tools.server, psutil, jinja2, tomlkit, jsonschema"])


def _mark(environment: Environment) -> None:
    partial = environment.marker + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump({"key": environment.key, "builtAt": int(time.time())}, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(partial, environment.marker)


def _note_failure(environment: Environment, error: BatonError) -> None:
    try:
        with open(environment.failure, "w", encoding="utf-8") as file:
            json.dump({"code": error.code, "message": error.message}, file)
    except OSError as second:
        # The disk may be what failed; the log is on the same one, so there is nowhere left to say it.
        print(f"no failure note: {second}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
