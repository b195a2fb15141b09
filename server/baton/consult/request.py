"""What the process that asks needs to know of one turn, as it is recorded with it."""

from __future__ import annotations

from typing import Any

from baton.contract.base import Wire


class TurnRequest(Wire):
    """The agent's settings and the bounds of one question; texts are in the consultation's content."""

    command: str | None = None
    web_search: bool = False
    settings: dict[str, Any] = {}
    pass_names: list[str] = []
    web: bool = False
    """Whether this question is to be answered from the web."""
    folder: str | None = None
    """What an agent that is held to reading may read; None: nothing."""
    session: dict[str, Any] | None = None
    """The permission profile of the session that asks, as it sent it."""
    seat: str
    """The agent's place in the consultation: a follow-up goes on in the same one."""
    resume: str | None = None
    """The program's own id of the conversation to go on with."""
    has_schema: bool = False
    timeout_seconds: float
    idle_seconds: float
    max_cost: float | None = None
    """US dollars for this turn, where the program can hold them."""
    max_parallel: int
    """Agents at work at once on this machine, as the policy had it when this was recorded."""
