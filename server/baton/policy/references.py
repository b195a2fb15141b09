"""Names in the policy that must lead somewhere."""

from __future__ import annotations

from typing import Any

from baton.contract.nearest import did_you_mean
from baton.contract.workflow import Executor, Step, read_binding
from baton.policy.model import Policy


def broken_references(policy: Policy) -> list[tuple[tuple[str, ...], str]]:
    """Names in the policy that lead nowhere: the key, and what is expected there."""
    broken: list[tuple[tuple[str, ...], str]] = []
    if policy.routing.default_role not in policy.roles:
        advice = did_you_mean(policy.routing.default_role, sorted(policy.roles))
        broken.append((("routing", "default_role"), f"expected the name of a role; {advice}"))
    for name, role in policy.roles.items():
        if role.tier not in policy.tiers:
            advice = did_you_mean(role.tier, sorted(policy.tiers))
            broken.append((("roles", name, "tier"), f"expected the name of a tier; {advice}"))
    for tier in policy.escalation.tiers:
        if tier not in policy.tiers:
            advice = did_you_mean(tier, sorted(policy.tiers))
            broken.append((("escalation", "tiers"), f"expected names of tiers, got {tier!r}; {advice}"))
    tables: dict[tuple[str, ...], dict[Step, str]] = {("bindings",): policy.workflow.bindings}
    tables |= {("presets", name): table for name, table in policy.workflow.presets.items()}
    for place, table in tables.items():
        for step, text in table.items():
            broken += [
                (("workflow", *place, step.value), fault) for fault in _binding_faults(policy, step, text)
            ]
    return broken


def _binding_faults(policy: Policy, step: Step, text: str) -> list[str]:
    try:
        return [f"expected a name that there is; {fault}" for fault in unknown_names(policy, step, text)]
    except ValueError as fault:
        return [str(fault)]


def unknown_names(policy: Policy, step: Step, text: str) -> list[str]:
    """The names in a binding that are no agent, or no role, each with the nearest that there is.

    Raises `ValueError` for what the step cannot be bound to.
    """
    binding = read_binding(step, text)
    known: dict[str, Any] = policy.roles if binding.executor is Executor.ISOLATED else policy.consult.agents
    what = "role" if binding.executor is Executor.ISOLATED else "agent"
    return [
        f"no {what} {name!r}: {did_you_mean(name, sorted(known))}"
        for name in binding.names
        if name not in known
    ]
