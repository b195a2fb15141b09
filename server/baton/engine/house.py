"""What every door of Baton opens first: the state folder, the ledger and the person's surroundings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from baton.ledger.artifacts import Artifacts
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger
from baton.policy.load import load_policy, person_home
from baton.policy.model import Policy
from baton.process.utf8 import require_utf8


@dataclass(frozen=True)
class House:
    """An open state folder with its ledger. Close it, or use it as a context manager."""

    env: Mapping[str, str]
    state: StateFolder
    ledger: Ledger
    artifacts: Artifacts

    @classmethod
    def open(cls, env: Mapping[str, str] | None = None) -> House:
        """Open what `env` names. Raises `StateUnavailable`, `InvalidInput` or `Unsupported`, one line."""
        require_utf8()
        env = dict(os.environ if env is None else env)
        state = StateFolder.find(env)
        return cls(env=env, state=state, ledger=Ledger.open(state), artifacts=Artifacts(state))

    @property
    def codex_home(self) -> Path:
        """The person's own Codex home."""
        return person_home(self.env)

    def policy(self, workspace: Path) -> Policy:
        """The policy in force for a workspace. Raises `InvalidInput`."""
        return load_policy(self.codex_home, workspace)

    def close(self) -> None:
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
