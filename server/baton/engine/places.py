"""A worker's turn: its place in the queue of the machine, held while it works."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from baton.engine.context import RunContext
from baton.ledger.locks import is_held

LOOK_SECONDS = 1.0
"""How often a waiting task looks for places of runs whose runner died."""


@asynccontextmanager
async def worker_place(ctx: RunContext, task_id: str) -> AsyncIterator[None]:
    """Wait for a place among the workers of this machine, at most until the run is told to stop."""
    ledger, limit = ctx.house.ledger, ctx.policy.concurrency.max_workers
    ticket = ledger.queue_up(ctx.run_id, task_id, limit)
    try:
        version = ledger.data_version()
        started = ticket.started_at is not None
        while not started and not ctx.stop.asked:
            version = await ledger.changed(version, LOOK_SECONDS)
            _drop_dead(ctx)
            started = ledger.start_ticket(ticket.ticket, limit)
        yield
    finally:
        with anyio.CancelScope(shield=True):
            ledger.drop_ticket(ticket.ticket)


def _drop_dead(ctx: RunContext) -> None:
    """Give back the places of runs that no runner has any more."""
    for run_id in {ticket.run_id for ticket in ctx.house.ledger.tickets()} - {ctx.run_id}:
        if not is_held(ctx.house.state.run_lock(run_id)):
            ctx.house.ledger.drop_tickets(run_id)
