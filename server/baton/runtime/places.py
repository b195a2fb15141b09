"""Where environments lie: `<state>/runtime/<key>/`, with a lock, a log and a failure note beside each."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping

from baton.contract.errors import InvalidInput, StateUnavailable

BUNDLE = (
    *("server", "policy", "skills", "agents", "requirements.lock", "LICENSE", ".mcp.json"),
    *(".codex-plugin/plugin.json", ".agents/plugins/marketplace.json"),
    *("scripts/serve.py", "scripts/serve.sh", "scripts/program.sh", "scripts/orchestrate.py"),
    *("examples", "config"),
)
"""What of the plugin an environment holds a copy of, and is keyed by: enough to install from."""

_MARKER = "ready.json"


class Environment:
    """The places of one environment; says nothing of whether it exists."""

    def __init__(self, runtime: str, key: str) -> None:
        self.key = key
        self.runtime = runtime
        self.root = os.path.join(runtime, key)
        self.bundle = os.path.join(self.root, "bundle")
        self.venv = os.path.join(self.root, "venv")
        self.python = os.path.join(self.venv, "bin", "python")
        self.bin = os.path.join(self.root, "bin")
        self.marker = os.path.join(self.root, _MARKER)
        self.lock = os.path.join(runtime, key + ".lock")
        """Users hold it shared for life; a builder or remover holds it alone."""
        self.log = os.path.join(runtime, key + ".log")
        self.failure = os.path.join(runtime, key + ".failed")

    def ready(self) -> bool:
        """Whether it was built to the end and its interpreter is still there. Ask while holding the lock."""
        return os.path.exists(self.marker) and os.access(self.python, os.X_OK)


def state_folder(environment: Mapping[str, str]) -> str:
    """The state folder: `BATON_STATE`, else the platform's place; the ledger's answer, without a library.

    Raises `InvalidInput` when it is named by a relative path or lies below a Codex home.
    """
    named = environment.get("BATON_STATE")
    if named and not os.path.isabs(named):
        raise InvalidInput(f"BATON_STATE must be an absolute path, not {named!r}")
    state = os.path.realpath(named or _default_state(environment))
    for home in (environment.get("CODEX_HOME"), os.path.expanduser("~/.codex")):
        if home and (state + os.sep).startswith(os.path.realpath(home) + os.sep):
            raise InvalidInput(
                f"the state folder {state} lies in the Codex home {home}, which workers may not read; "
                "set BATON_STATE to a folder outside it"
            )
    return state


def _default_state(environment: Mapping[str, str]) -> str:
    xdg = environment.get("XDG_STATE_HOME", "")
    if os.path.isabs(xdg):
        return os.path.join(xdg, "baton")
    base = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/state"
    return os.path.join(os.path.expanduser(base), "baton")


def runtime_folder(environment: Mapping[str, str]) -> str:
    """The folder of environments, made with its parents for the person alone.

    Raises `StateUnavailable` when it cannot be made or written, in one line that says why.
    """
    state = state_folder(environment)
    runtime = os.path.join(state, "runtime")
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)
        os.makedirs(runtime, mode=0o700, exist_ok=True)
    except OSError as error:
        raise unwritable(state, error) from None
    if not os.access(runtime, os.W_OK | os.X_OK):
        raise StateUnavailable(
            f"the state folder {state} is not writable: make it so, or set BATON_STATE to another folder"
        )
    return runtime


def unwritable(path: str, error: OSError) -> StateUnavailable:
    """The one line for a state folder that the system refuses."""
    return StateUnavailable(
        f"the state folder cannot be used: {error.filename or path} ({error.strerror or error}): "
        "free or unlock it, or set BATON_STATE to another folder"
    )


def environment_key(root: str, abi: str) -> str:
    """The name of the environment for the bundle at `root` and an interpreter's ABI.

    It changes with any byte of the bundle, compiled files aside.
    """
    digest = hashlib.sha256()
    for name in bundle_files(root):
        with open(os.path.join(root, name), "rb") as file:
            content = file.read()
        digest.update(b"%s\0%d\0" % (os.fsencode(name), len(content)))
        digest.update(content)
    return f"{digest.hexdigest()[:16]}-{abi}"


def bundle_files(root: str) -> list[str]:
    """The bundle's files below `root`, sorted.

    Links, compiled files and what is hidden (caches of tools, an editor's files) are no part of it.
    """
    return sorted(_walk(root))


def own_environment() -> Environment | None:
    """The environment that this process runs from, None in a development or foreign one."""
    runtime, key = os.path.split(os.path.dirname(sys.prefix))
    if os.path.basename(sys.prefix) != "venv":
        return None
    environment = Environment(runtime, key)
    return environment if os.path.exists(environment.marker) else None


def _walk(root: str) -> Iterator[str]:
    for top in BUNDLE:
        path = os.path.join(root, top)
        if os.path.isfile(path):
            yield top
        for folder, names, files in os.walk(path):
            names[:] = [name for name in names if name != "__pycache__" and not name.startswith(".")]
            for name in files:
                full = os.path.join(folder, name)
                if not name.endswith(".pyc") and not name.startswith(".") and not os.path.islink(full):
                    yield os.path.relpath(full, root)
