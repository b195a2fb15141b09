"""The doctor on second opinions: the agents that the policy lets be asked, where consultation is on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import anyio

from baton.consult.adapters.protocol import Runtime
from baton.consult.find import Found, LoggedIn, find_agents
from baton.contract.errors import BatonError
from baton.engine.house import House
from baton.install.findings import Finding, failure, note, ok, warning
from baton.policy.consult_rules import ConsultRules


def check_agents(env: Mapping[str, str], rules: ConsultRules) -> Iterator[Finding]:
    """A finding for each command line of an agent that may be asked; no model is. Nothing where it is off."""
    if not rules.enabled:
        return
    agents = [agent for agent in rules.agents.values() if agent.enabled]
    commands = {Runtime(agent.runtime): agent.command or None for agent in agents}

    async def look(house: House) -> list[Found]:
        return await find_agents(house, commands, names=rules.pass_to_agents, only=tuple(commands))

    try:
        with House.open(env) as house:
            found = anyio.run(look, house)
    except BatonError as error:
        yield failure("agents", error.message)
        return
    for one in found:
        yield _finding(one)
    if not any(one.usable for one in found):
        yield warning(
            "agents", "second opinions are on, and nobody can be asked", "see `baton consult agents`"
        )


def _finding(found: Found) -> Finding:
    name = found.runtime.value
    if found.program is None or found.version is None:
        return note("agents", f"{name}: {found.detail}", found.action)
    here = f"{name} {found.version} at {found.program}"
    if found.login is LoggedIn.NO:
        return warning("agents", f"{here}: {found.detail}", found.action and f"run `{found.action}`")
    if found.login is LoggedIn.UNKNOWN:
        return note("agents", f"{here}: {found.detail}")
    return ok("agents", f"{here}; {found.detail}")
