"""What of this machine a run uses: the Codex program, the workers' home, and its sandbox as it was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from baton.codex.binary import CodexBinary, find_codex
from baton.codex.catalogue import catalogue
from baton.codex.home import WorkerHome
from baton.codex.probe import Probe, probe
from baton.codex.session_profile import UNBOUNDED, SessionProfile, read_session_profile
from baton.contract.catalogue import ModelEntry
from baton.contract.session import Session
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.engine.worker_home import worker_home
from baton.process.environment import tool_environment


@dataclass(frozen=True)
class Machine:
    """The Codex that runs workers here."""

    binary: CodexBinary
    home: WorkerHome
    probe: Probe

    @classmethod
    async def open(cls, house: House, launcher: str | None) -> Machine:
        """Find Codex and look at its sandbox; what is slow is remembered in the state folder.

        Raises `Unsupported` without a usable Codex, `InvalidInput` for a config.toml that cannot be read.
        """
        binary = await blocking(find_codex, house.env, launcher, cache=house.state.codex_versions)
        home = await blocking(worker_home, house)
        seen = await probe(binary, home, cache=house.state.scratch, env=tool_environment(house.env))
        return cls(binary, home, seen)

    @property
    def prevents(self) -> bool:
        """Whether a scope is held by the sandbox here, as far as its plan lets it."""
        return self.probe.prevents and not self.home.allow_rules_apply

    @property
    def why_detected(self) -> str | None:
        """Why scopes are only detected on this machine; None when they are prevented."""
        if self.prevents:
            return None
        return self.home.why if self.home.allow_rules_apply else self.probe.why

    async def catalogue(self, house: House) -> tuple[ModelEntry, ...]:
        """The models of this Codex. Raises `CodexFailure`."""
        env = self.server_environment(house, None)
        return await catalogue(self.binary.path, self.home.path, env, house.state.root / "catalogue.json")

    def server_environment(self, house: House, run_id: str | None) -> dict[str, str]:
        """Environment of the Codex processes that work for a run: the way to the model, nothing else."""
        env = tool_environment(house.env, self.home.env_names, run_id=run_id)
        return {**env, **self.home.environment}


def bounds_of(session: Session, env: Mapping[str, str]) -> SessionProfile:
    """What the session may read, write and reach; a terminal is bounded by the person's own rights."""
    if session.profile is None:
        return UNBOUNDED
    return read_session_profile(session.profile, env)
