"""What is wrong with the policy in force: every fault a line of its own, with file, key and expectation."""

from __future__ import annotations

from pathlib import Path

from baton.contract.errors import InvalidInput
from baton.policy.faults import PolicyRefused
from baton.policy.load import load_layers
from baton.policy.render import role_instructions


def policy_faults(codex_home: Path | None, project: Path | None, bundle: Path | None = None) -> list[str]:
    """The faults of all layers together; empty when the policy can be used. Arguments as `load_layers`."""
    try:
        layered = load_layers(codex_home, project, bundle)
    except PolicyRefused as refused:
        return list(refused.lines)
    except InvalidInput as error:
        return [error.message]
    faults = []
    for name, role in layered.policy.roles.items():
        try:
            role_instructions(name, role, bundle)
        except InvalidInput as error:
            faults.append(f"{layered.origin(f'roles.{name}.template').file}: {error.message}")
    return faults
