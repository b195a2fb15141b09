"""Switches consultation on in the person's own policy file, and names a model for an agent that needs one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from baton.contract.errors import InvalidInput
from baton.contract.nearest import did_you_mean
from baton.policy.faults import KeyPath
from baton.policy.hard_link import hard_link_note
from baton.policy.person import read_person, write_keys


@dataclass(frozen=True)
class SetUp:
    """What was done to the person's policy."""

    file: Path
    changes: tuple[str, ...]
    """Keys that have another value now, each as it stands in the file; empty when all was so before."""
    note: str | None = None
    """What else the change does to the file, for the person."""


def set_up(codex_home: Path, models: Mapping[str, str], *, dry_run: bool = False) -> SetUp:
    """Have the person's policy say `[consult] enabled = true`, and these models of agents; no more.

    Everything else in the file stays as it is, byte for byte where the format allows it. Raises
    `InvalidInput` for an agent that the policy does not have and for a file that cannot be edited safely,
    `WrongState` when somebody else changes it at the same time, `StateUnavailable` when it cannot be written.
    """
    read = read_person(codex_home)
    known = read.layered.policy.consult.agents
    for name in models:
        if name not in known:
            advice = did_you_mean(name, known, "agents: " + ", ".join(sorted(known)))
            raise InvalidInput(f"no agent {name!r}; {advice}")
    wanted: dict[KeyPath, str | bool] = {("consult", "enabled"): True}
    wanted |= {("consult", "agents", name, "model"): model for name, model in models.items()}
    note = hard_link_note(read.file)
    changes = write_keys(read, wanted, dry_run=dry_run)
    return SetUp(read.file, changes, note if changes else None)
