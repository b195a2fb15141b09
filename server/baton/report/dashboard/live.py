"""News as server-sent events: that a page's subject has changed, never what."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

import anyio
import anyio.to_thread

from baton.contract.states import RunState
from baton.engine.house import House
from baton.ledger.locks import is_held
from baton.ledger.overview import Overview

LEAST_SECONDS = 0.5
"""Between two events, however much happens."""

LOOK_SECONDS = 5.0
"""After so long it is looked even without a change: times move on, and a process that dies writes nothing."""

STOP_SECONDS = 0.5
"""Within so long a stream ends when the server does."""

Mark = Callable[[], str]
"""Something that differs whenever the page would look different."""


async def news(house: House, mark: Mark, stopping: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The stream of one page: a comment at once, then an event for each change."""
    ledger = house.ledger
    version = ledger.data_version()
    known = await anyio.to_thread.run_sync(mark)
    yield b": at your service\n\n"
    while not stopping():
        looked = time.monotonic()
        changed = version
        while changed == version and time.monotonic() - looked < LOOK_SECONDS and not stopping():
            changed = await ledger.changed(version, STOP_SECONDS)
        version = changed
        now = await anyio.to_thread.run_sync(mark)
        if now != known:
            known = now
            yield b"event: changed\ndata: 1\n\n"
            await anyio.sleep(LEAST_SECONDS)
        else:
            yield b": nothing\n\n"


def run_mark(house: House, run_id: str) -> str:
    """Of one run."""
    overview = Overview(house.ledger.db)
    line, event = overview.run(run_id), overview.last_event(run_id)
    if line is None:
        return "gone"
    moving = ""
    if not RunState(line.state).at_rest:
        moving = f"{is_held(house.state.run_lock(run_id))} {time.time() // LOOK_SECONDS}"
    return f"{line.state} {line.updated_at} {event and event.seq} {moving}"


def runs_mark(house: House) -> str:
    """Of the list of runs."""
    overview = Overview(house.ledger.db)
    ended = house.ledger.db.read("SELECT count(*), max(updated_at) FROM runs")[0]
    at_work = [
        (line.run_id, event and event.seq, is_held(house.state.run_lock(line.run_id)))
        for line in overview.unfinished()
        for event in [overview.last_event(line.run_id)]
    ]
    moving = time.time() // LOOK_SECONDS if at_work else 0
    return f"{tuple(ended)} {at_work} {moving}"


def pools_mark(house: House, pool_id: str | None = None) -> str:
    """Of one pool, or of the list of pools."""
    where, values = ("", []) if pool_id is None else (" WHERE pool_id = ?", [pool_id])
    pools = house.ledger.db.read(f"SELECT pool_id, state, updated_at FROM pools{where}", values)
    counts = house.ledger.db.read(
        f"SELECT pool_id, state, count(*) FROM pool_jobs{where} GROUP BY 1, 2", values
    )
    held = [is_held(house.state.pool_lock(row[0])) for row in pools]
    return f"{[tuple(row) for row in pools]} {[tuple(row) for row in counts]} {held}"


def consultations_mark(house: House, consultation_id: str | None = None) -> str:
    """Of one consultation, or of the list of them."""
    where, values = ("", []) if consultation_id is None else (" WHERE consultation_id = ?", [consultation_id])
    own = house.ledger.db.read(f"SELECT count(*), max(updated_at) FROM consultations{where}", values)
    turns = house.ledger.db.read(
        f"SELECT state, count(*), max(ended_at) FROM consult_turns{where} GROUP BY 1", values
    )
    return f"{[tuple(row) for row in (*own, *turns)]}"


def reviews_mark(house: House, review_id: str | None = None) -> str:
    """Of one review, or of the list of them."""
    where, values = ("", []) if review_id is None else (" WHERE review_id = ?", [review_id])
    own = house.ledger.db.read(
        f"SELECT state, count(*), max(updated_at) FROM reviews{where} GROUP BY 1", values
    )
    found = house.ledger.db.read(f"SELECT count(*) FROM review_findings{where}", values)
    return f"{[tuple(row) for row in (*own, *found)]}"


def workflows_mark(house: House, workflow_id: str | None = None) -> str:
    """Of one workflow, or of the list of them."""
    where, values = ("", []) if workflow_id is None else (" WHERE workflow_id = ?", [workflow_id])
    own = house.ledger.db.read(
        f"SELECT state, count(*), max(updated_at) FROM workflows{where} GROUP BY 1", values
    )
    steps = house.ledger.db.read(f"SELECT state, count(*) FROM workflow_steps{where} GROUP BY 1", values)
    return f"{[tuple(row) for row in (*own, *steps)]}"
