"""What the supervising sessions spent while a run went on, from their own rollouts."""

from __future__ import annotations

import time
from dataclasses import dataclass

from baton.codex.rollout import find_rollout, read_rollout
from baton.contract.evidence import Usage
from baton.engine.house import House
from baton.engine.interest import interested
from baton.ledger.records import RunRecord

NOTHING = Usage(
    input_tokens=0, cached_input_tokens=0, output_tokens=0, reasoning_output_tokens=0, total_tokens=0
)


@dataclass(frozen=True)
class Supervisor:
    """One session with an interest in the run."""

    thread_id: str
    during: Usage
    """From the beginning of its interest to the end of the run, or until now.

    The request that made the first call came before.
    """
    session: Usage
    """The whole session so far."""
    model: str | None
    """The model that spent the first figure; None when that is unknown or several did."""


def supervisors(house: House, run: RunRecord) -> list[Supervisor]:
    """The supervising sessions of a run, oldest first; what their rollouts do not tell stays unknown.

    They are looked for in the person's own Codex home. Sessions that only looked are none.
    """
    return [_one(house, run, thread, since) for thread, since in interested(house, run).items()]


def _one(house: House, run: RunRecord, thread_id: str, since: float) -> Supervisor:
    unknown = Supervisor(thread_id, Usage(), Usage(), None)
    path = find_rollout(house.codex_home, thread_id)
    if path is None:
        return unknown
    try:
        whole = read_rollout(path)
        part = read_rollout(path, since=since, until=run.ended_at or time.time())
    except OSError:
        return unknown
    during = part.usage
    if during.total_tokens is None and part.reached:
        # It was there and reported nothing: that is known to be nothing.
        during = NOTHING
    return Supervisor(thread_id, during, whole.usage, part.models[0] if len(part.models) == 1 else None)
