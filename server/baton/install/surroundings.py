"""What an installation finds on this machine: the Codex program and its models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio

from baton.codex.binary import CodexBinary, find_codex
from baton.codex.catalogue import catalogue
from baton.codex.home import WorkerHome, prepare_worker_home
from baton.contract.catalogue import ModelEntry
from baton.contract.errors import BatonError
from baton.install.places import Places
from baton.ledger.state import StateFolder
from baton.process.environment import tool_environment


@dataclass(frozen=True)
class Codex:
    """The Codex of this machine as workers use it."""

    binary: CodexBinary
    home: WorkerHome
    models: tuple[ModelEntry, ...]


def find(env: Mapping[str, str], places: Places) -> Codex:
    """Find Codex and its models; nothing in the person's Codex home is written.

    Raises `Unsupported` without a usable Codex, `InvalidInput` for an unreadable config.toml, `CodexFailure`
    when Codex does not list its models.
    """
    state = StateFolder.find(env)
    # Codex writes into its home even when it only tells its version.
    binary = find_codex({**env, "CODEX_HOME": str(state.codex_home)}, cache=state.codex_versions)
    home = prepare_worker_home(state.codex_home, places.home, env, temporary=state.scratch / "codex")
    return Codex(binary, home, models(binary.path, home, env, state.root / "catalogue.json"))


def models(
    binary: Path, home: WorkerHome, env: Mapping[str, str], cache: Path | None
) -> tuple[ModelEntry, ...]:
    """The models that Codex lists for workers. Raises `CodexFailure`."""
    variables = {**tool_environment(env, home.env_names), **home.environment}
    return anyio.run(catalogue, binary, home.path, variables, cache)


def find_or_why(env: Mapping[str, str], places: Places) -> tuple[Codex | None, str | None]:
    """As `find`, with the reason instead where an installation can do without."""
    try:
        return find(env, places), None
    except BatonError as error:
        if error.code == "invalid_input":
            raise
        return None, error.message
