"""One queue for the workers of all runs of this machine: who may start next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from baton.ledger.base import Part, now
from baton.ledger.records import TicketRecord
from baton.ledger.tables import TICKETS


class Queue(Part):
    """Tickets of tasks that wait for a worker or have one. Each change is one transaction.

    None is durable: when the machine goes down, so do all who wait and work.
    """

    def queue_up(self, run_id: str, task_id: str, limit: int) -> TicketRecord:
        """Queue a task, started at once when fewer than `limit` workers run and nobody is before it."""
        with self.db.transaction(durable=False) as db:
            ticket = TicketRecord(run_id=run_id, task_id=task_id, queued_at=now())
            number = TICKETS.insert(db, ticket, skip=("ticket",))
            self._start(number, limit)
            return self._one(TICKETS, number, what="ticket")

    def start_ticket(self, ticket: int, limit: int) -> bool:
        """Whether the ticket's task may start, and if so note that it has. Raises `NotFound`."""
        # Most looks find nothing to do: they cost no write.
        if not may_start(ticket, self.tickets(), limit):
            return False
        with self.db.transaction(durable=False):
            return self._start(ticket, limit)

    def tickets(self) -> list[TicketRecord]:
        """All tickets, oldest first."""
        return self._many(TICKETS, "1", [], "ticket")

    def drop_ticket(self, ticket: int) -> None:
        """The task needs no worker any more; nothing when the ticket is gone."""
        with self.db.transaction(durable=False) as db:
            db.execute("DELETE FROM tickets WHERE ticket = ?", (ticket,))

    def drop_tickets(self, run_id: str) -> None:
        """Drop what a run that has no runner left in the queue."""
        with self.db.transaction(durable=False) as db:
            db.execute("DELETE FROM tickets WHERE run_id = ?", (run_id,))

    def _start(self, ticket: int, limit: int) -> bool:
        if not may_start(ticket, self.tickets(), limit):
            return False
        with self.db.transaction(durable=False) as db:
            db.execute("UPDATE tickets SET started_at = ? WHERE ticket = ?", (now(), ticket))
        return True


def may_start(ticket: int, tickets: Sequence[TicketRecord], limit: int) -> bool:
    """Whether this waiting ticket is among the next that the free places are for. Pure.

    Places go round the runs: of all that wait, first those whose run has the fewest workers, counting the
    ones it would have by then; among equals the older ticket.
    """
    working = [one for one in tickets if one.started_at is not None]
    free = limit - len(working)
    waiting = [one for one in tickets if one.started_at is None]
    if free <= 0 or all(one.ticket != ticket for one in waiting):
        return False
    share = Counter(one.run_id for one in working)
    ranked = []
    for one in waiting:
        ranked.append((share[one.run_id], one.ticket))
        share[one.run_id] += 1
    return ticket in [number for _, number in sorted(ranked)[:free]]
