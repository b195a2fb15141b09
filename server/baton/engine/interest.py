"""Which sessions have an interest in a run: who started it, continued it, or waits for it while it works."""

from __future__ import annotations

from baton.contract.session import Session
from baton.engine.house import House
from baton.engine.plan import RunPlan
from baton.ledger.records import NewEvent, RunRecord

_JOINING = ("run.joined", "run.continued")
"""Events that name a session's thread; a session that started the run is named by its plan."""


def join(house: House, run_id: str, session: Session) -> None:
    """Note that a session has an interest in the run from now on; nothing for one that is known, or none."""
    thread = session.thread_id
    if thread is not None and thread not in interested(house, house.ledger.run(run_id)):
        house.ledger.append_events(run_id, [NewEvent(kind="run.joined", data={"thread": thread})])


def interested(house: House, run: RunRecord) -> dict[str, float]:
    """Threads of the sessions, each with the time from which it had an interest, seconds since 1970."""
    starters = RunPlan.model_validate(run.options).supervisors
    found = dict.fromkeys(starters, run.created_at)
    for event in house.ledger.events_of(run.run_id, _JOINING):
        thread = event.data.get("thread")
        if isinstance(thread, str):
            found.setdefault(thread, event.created_at)
    return found
