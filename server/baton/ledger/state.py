"""The state folder: where it is, whether it may be there, and the folders in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from baton.contract.errors import InvalidInput, StateUnavailable
from baton.ledger.filesystem import network_type

VARIABLE = "BATON_STATE"


@dataclass(frozen=True)
class StateFolder:
    """All that Baton keeps for this user on this machine. Made by `find`, with its folders (0700)."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "baton.sqlite3"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def repos(self) -> Path:
        return self.root / "repos"

    @property
    def worktrees(self) -> Path:
        return self.root / "worktrees"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def runtime(self) -> Path:
        return self.root / "runtime"

    @property
    def codex_home(self) -> Path:
        return self.root / "codex-home"

    @property
    def codex_versions(self) -> Path:
        """The file that remembers which version a Codex program is."""
        return self.root / "codex-versions.json"

    @property
    def locks(self) -> Path:
        return self.root / "locks"

    @classmethod
    def find(cls, env: Mapping[str, str] | None = None) -> StateFolder:
        """The folder that `BATON_STATE` names, else the platform's place for state; made when absent.

        Raises `InvalidInput` when it is named by a relative path or lies below a Codex home, and
        `StateUnavailable` when it cannot be made, written or belongs to someone else, or is on a network.
        """
        env = os.environ if env is None else env
        root = Path(os.path.realpath(_named(env)))
        for home in _codex_homes(env):
            if root.is_relative_to(home):
                raise InvalidInput(
                    f"the state folder {root} lies in the Codex home {home}, which workers may not read;"
                    f" set {VARIABLE} to a folder outside it"
                )
        kind = network_type(root)
        if kind is not None:
            raise StateUnavailable(
                f"the state folder {root} is on a network file system ({kind}), which cannot keep a database"
                f" safe; set {VARIABLE} to a folder on a local disk"
            )
        state = cls(root)
        for folder in (root, *state.folders()):
            _make_private(folder)
        return state

    def folders(self) -> tuple[Path, ...]:
        return (
            *(self.artifacts, self.repos, self.worktrees, self.scratch),
            *(self.runtime, self.codex_home, self.locks),
        )

    def run_lock(self, run_id: str) -> Path:
        """The lock that a runner holds for life: held means that the run has a runner."""
        return self.locks / f"run-{run_id}.lock"

    def owner_lock(self, run_id: str) -> Path:
        """The lock that waiting sessions hold, shared: held means that somebody waits for the run."""
        return self.locks / f"owner-{run_id}.lock"

    def pool_lock(self, pool_id: str) -> Path:
        """The lock that the process working off a pool holds for life."""
        return self.locks / f"pool-{pool_id}.lock"

    def consultation_lock(self, consultation_id: str) -> Path:
        """The lock that the process which asks for a consultation holds for life."""
        return self.locks / f"consultation-{consultation_id}.lock"

    def pool_folder(self, pool_id: str) -> Path:
        """Where the logs of a pool's attempts are."""
        return self.root / "pools" / pool_id

    @property
    def maintenance_lock(self) -> Path:
        return self.locks / "maintenance.lock"


def _named(env: Mapping[str, str]) -> Path:
    named = env.get(VARIABLE)
    if not named:
        return _default(env)
    path = Path(named)
    if not path.is_absolute():
        raise InvalidInput(f"{VARIABLE} must be an absolute path, not {named!r}")
    return path


def _default(env: Mapping[str, str]) -> Path:
    # Read from `env` alone: the door that answers before any library is loaded must come to the same folder.
    xdg = Path(env.get("XDG_STATE_HOME", ""))
    if xdg.is_absolute():
        return xdg / "baton"
    below = "Library/Application Support" if sys.platform == "darwin" else ".local/state"
    return _home(env) / below / "baton"


def _codex_homes(env: Mapping[str, str]) -> list[Path]:
    homes = [Path(env["CODEX_HOME"])] if env.get("CODEX_HOME") else []
    homes.append(_home(env) / ".codex")
    return [Path(os.path.realpath(home)) for home in homes]


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home())


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid != os.geteuid():
            raise StateUnavailable(
                f"the state folder {folder} belongs to another user; set {VARIABLE} to a folder of your own"
            )
        if status.st_mode & 0o077:
            folder.chmod(0o700)
        if not os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(None, "not writable")
    except OSError as error:
        raise StateUnavailable(
            f"the state folder {folder} cannot be used ({error.strerror}); make it writable, or set"
            f" {VARIABLE} to another folder"
        ) from None
