"""The Codex that would run jobs, and the models it has: all that checking a job file needs of the machine."""

from __future__ import annotations

from baton.codex.binary import CodexBinary, find_codex
from baton.codex.catalogue import catalogue
from baton.codex.home import prepare_worker_home
from baton.contract.catalogue import ModelEntry
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.process.environment import tool_environment


async def find_models(house: House) -> tuple[CodexBinary, tuple[ModelEntry, ...]]:
    """The newest usable Codex and its catalogue; no worker and no sandbox is started.

    Raises `Unsupported` without a usable Codex, `CodexFailure` when it does not list its models.
    """
    binary = await blocking(find_codex, house.env, None, cache=house.state.root)
    home = await blocking(
        prepare_worker_home,
        house.state.codex_home,
        house.codex_home,
        house.env,
        temporary=house.state.scratch / "codex",
    )
    env = {**tool_environment(house.env, home.env_names), **home.environment}
    return binary, await catalogue(binary.path, home.path, env, house.state.root / "catalogue.json")
