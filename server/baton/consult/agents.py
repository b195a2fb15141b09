"""The agents of the policy as they are on this machine, and who asks them."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from baton.consult.adapters.protocol import Adapter, Agent, Runtime
from baton.consult.find import Found, LoggedIn, find_agents
from baton.consult.identity import Host
from baton.contract.errors import InvalidInput
from baton.contract.session import Session
from baton.engine.house import House
from baton.policy.consult_rules import ConsultRules

HOST_RUNTIME = "BATON_HOST_RUNTIME"
"""Names the program whose sessions ask; without it that is Codex."""


BELIEVED_SECONDS = 60.0

OTHER_HOST = "other"
"""The value for a program that is none of those that can be asked."""


@dataclass(frozen=True)
class Known:
    """What a look at an agent's program told."""

    missing: str | None
    """Why it cannot be asked, with what to do; None when nothing speaks against it."""
    version: str | None = None
    logged_in: bool | None = None
    """None: it does not tell."""


Look = Callable[[House, Agent], Awaitable[Known]]
"""Looks for an agent's program and its login, without asking any model."""

AdapterOf = Callable[[Runtime], Adapter]


class ProgramLook:
    """Looks at the programs on this machine; what was found is believed for a minute."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Runtime, str | None, tuple[str, ...]], tuple[float, Known]] = {}

    async def __call__(self, house: House, agent: Agent) -> Known:
        key = (agent.runtime, agent.command, agent.env_names)
        at, known = self._seen.get(key, (0.0, None))
        if known is None or time.monotonic() - at > BELIEVED_SECONDS or known.missing is not None:
            (found,) = await find_agents(
                house, {agent.runtime: agent.command}, names=agent.env_names, only=(agent.runtime,)
            )
            known = _known(found)
            self._seen[key] = (time.monotonic(), known)
        return known


def _known(found: Found) -> Known:
    missing = None
    if not found.usable:
        missing = found.detail or "its program cannot be used"
        if found.action:
            missing += f"; the person runs: {found.action}"
    login = {LoggedIn.YES: True, LoggedIn.NO: False}.get(found.login)
    return Known(missing, found.version, login)


def host_of(env: Mapping[str, str], rules: ConsultRules, session: Session) -> Host:
    """Who asks: the runtime from the environment that the person set up, never from an argument.

    The model is the configured one and the one that the asking program reports of itself; both count. Raises
    `InvalidInput` for a runtime that there is none of.
    """
    runtime = env.get(HOST_RUNTIME) or Runtime.CODEX.value
    known = [*(one.value for one in Runtime), OTHER_HOST]
    if runtime not in known:
        raise InvalidInput(f"{HOST_RUNTIME} is {runtime!r}; it is one of {', '.join(known)}")
    models = [rules.host_model, session.model if runtime == Runtime.CODEX else None]
    return Host(runtime, tuple(dict.fromkeys(model for model in models if model)))


def agent_of(name: str, rules: ConsultRules) -> Agent:
    """An agent of the policy as its adapter takes it."""
    configured = rules.agents[name]
    return Agent(
        id=name,
        runtime=Runtime(configured.runtime),
        command=os.path.expanduser(configured.command) or None,  # noqa: PTH111
        model=configured.model or None,
        effort=configured.effort or None,
        web_search=configured.web_search,
        extra=configured.settings,
        env_names=rules.pass_to_agents,
    )
