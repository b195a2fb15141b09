"""The processes Baton started, so that the next start can end what a dead runner left."""

from __future__ import annotations

from baton.contract.errors import NotFound
from baton.ledger.base import Part, now
from baton.ledger.records import ProcessRecord
from baton.ledger.tables import PROCESSES


class Processes(Part):
    """Process records. Whether one still lives is for `process/tree.py` to say.

    They are not durable: when the machine goes down, so do the processes.
    """

    def record_process(self, process: ProcessRecord) -> int:
        """Record a started process; its id in the ledger. The start is set here unless given."""
        made = process if process.started_at else process.model_copy(update={"started_at": now()})
        with self.db.transaction(durable=False) as db:
            return PROCESSES.insert(db, made, skip=("process_id",))

    def end_process(self, process_id: int, how: str | None = None) -> None:
        """Note that it has ended; nothing when that is known already. Raises `NotFound`."""
        with self.db.transaction(durable=False) as db:
            old = self.process(process_id)
            if old.ended_at is None:
                PROCESSES.update(db, old, PROCESSES.revised(old, {"ended_at": now(), "how": how}))

    def process(self, process_id: int) -> ProcessRecord:
        """Raises `NotFound`."""
        rows = self.db.read(PROCESSES.select_one(), [process_id])
        if not rows:
            raise NotFound(f"no process record {process_id}")
        return PROCESSES.read(rows[0])

    def processes(self, run_id: str | None = None, *, open_only: bool = True) -> list[ProcessRecord]:
        """Processes of one run, or of all; unless asked otherwise those not known to have ended."""
        where, values = ["1"], list[object]()
        if run_id is not None:
            where.append("run_id = ?")
            values.append(run_id)
        if open_only:
            where.append("ended_at IS NULL")
        return self._many(PROCESSES, " AND ".join(where), values, "process_id")
