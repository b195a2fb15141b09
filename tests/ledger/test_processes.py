"""Process records: what a dead runner left can be found by the next start."""

from __future__ import annotations

import pytest

from baton.contract.errors import NotFound
from baton.ledger.records import ProcessRecord
from baton.ledger.store import Ledger
from ledger.samples import RUN, a_run


def test_processes_not_known_to_have_ended_are_listed(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [])
    check = ProcessRecord(run_id=RUN, kind="check", pid=11, start_time=2**40, boot_id="b", pgid=11)
    builder = ProcessRecord(kind="builder", pid=12, start_time=6, boot_id="b")
    first, second = ledger.record_process(check), ledger.record_process(builder)
    assert [one.process_id for one in ledger.processes()] == [first, second]
    found = ledger.processes(RUN)[0]
    assert (found.pid, found.start_time, found.boot_id, found.kind) == (11, 2**40, "b", "check")
    ledger.end_process(first, "exit 0")
    ended = ledger.process(first)
    ledger.end_process(first, "again")
    assert ledger.process(first) == ended
    assert ended.how == "exit 0"
    assert ledger.processes(RUN) == []
    assert ledger.processes(RUN, open_only=False) == [ended]
    with pytest.raises(NotFound):
        ledger.end_process(99)
