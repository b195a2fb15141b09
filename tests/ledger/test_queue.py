"""The queue for workers: limits hold, and runs take turns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from baton.contract.task import Task
from baton.ledger.ids import new_run_id
from baton.ledger.queue import may_start
from baton.ledger.records import RunRecord, TaskRecord, TicketRecord
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger


def ticket(number: int, run: str, *, working: bool = False) -> TicketRecord:
    started = 1.0 if working else None
    return TicketRecord(ticket=number, run_id=run, task_id=f"t{number}", queued_at=0.0, started_at=started)


def startable(tickets: list[TicketRecord], limit: int) -> list[int]:
    return [one.ticket for one in tickets if may_start(one.ticket, tickets, limit)]


def test_a_large_run_does_not_keep_a_later_one_waiting() -> None:
    tickets = [ticket(1, "a", working=True), *(ticket(n, "a") for n in range(2, 9)), ticket(9, "b")]
    assert startable(tickets, 2) == [9]
    assert startable(tickets, 3) == [2, 9]


def test_no_place_is_free_at_the_limit() -> None:
    assert startable([ticket(1, "a", working=True), ticket(2, "b")], 1) == []


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12),
    st.integers(min_value=1, max_value=6),
)
def test_free_places_are_used_and_never_more(drawn: list[tuple[str, bool]], limit: int) -> None:
    tickets = [ticket(number, run, working=working) for number, (run, working) in enumerate(drawn, start=1)]
    working = sum(one.started_at is not None for one in tickets)
    waiting = len(tickets) - working
    assert len(startable(tickets, limit)) == max(0, min(limit - working, waiting))


def test_a_ticket_starts_when_one_before_it_is_dropped() -> None:
    with Ledger.open(StateFolder.find()) as ledger:
        run_id = new_run_id()
        tasks = [
            TaskRecord(run_id=run_id, task_id=name, position=n, contract=Task(objective="x"))
            for n, name in enumerate("ab")
        ]
        ledger.create_run(RunRecord(run_id=run_id, workspace="/w", repo_key="k"), tasks)
        first = ledger.queue_up(run_id, "a", limit=1)
        second = ledger.queue_up(run_id, "b", limit=1)
        assert first.started_at is not None
        assert second.started_at is None
        assert not ledger.start_ticket(second.ticket, limit=1)
        ledger.drop_ticket(first.ticket)
        assert ledger.start_ticket(second.ticket, limit=1)
        ledger.drop_tickets(run_id)
        assert ledger.tickets() == []
