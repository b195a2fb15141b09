"""What flows between the processes of a run: its events, and the commands to its runner."""

from __future__ import annotations

from collections.abc import Sequence

from baton.contract.errors import NotFound
from baton.ledger.base import Part, now
from baton.ledger.records import CommandRecord, CommandState, EventRecord, JsonObject, NewEvent
from baton.ledger.tables import COMMANDS, EVENTS


class Stream(Part):
    """Events and commands. Each change is one transaction, durable when it returns unless told otherwise."""

    def append_event(
        self,
        run_id: str,
        kind: str,
        task_id: str | None = None,
        attempt: int | None = None,
        data: JsonObject | None = None,
        *,
        durable: bool = True,
    ) -> int:
        """Append one event; its number, greater by one than the run's last. Raises `NotFound`."""
        with self.db.transaction(durable=durable) as db:
            event = NewEvent(kind=kind, task_id=task_id, attempt=attempt, data=data or {})
            return self._write_event(db, run_id, event)

    def append_events(self, run_id: str, events: list[NewEvent]) -> int:
        """Append several in one transaction; the number of the last, 0 when there are none."""
        seq = 0
        if events:
            with self.db.transaction() as db:
                for event in events:
                    seq = self._write_event(db, run_id, event)
        return seq

    def events(
        self, run_id: str, after: int = 0, limit: int = 1000, task_id: str | None = None
    ) -> list[EventRecord]:
        """Events with a number greater than `after`, oldest first."""
        if task_id is None:
            return self._many(EVENTS, "run_id = ? AND seq > ?", [run_id, after, limit], "seq LIMIT ?")
        where, values = "run_id = ? AND task_id = ? AND seq > ?", [run_id, task_id, after, limit]
        # Left to itself, SQLite walks all events of the run.
        return self._many(EVENTS, where, values, "seq LIMIT ?", "events_task")

    def events_of(self, run_id: str, kinds: Sequence[str]) -> list[EventRecord]:
        """Every event of these kinds, oldest first."""
        places = ", ".join("?" * len(kinds))
        return self._many(EVENTS, f"run_id = ? AND kind IN ({places})", [run_id, *kinds], "seq")

    def last_seq(self, run_id: str) -> int:
        """The number of the run's last event, 0 when there is none."""
        row = self.db.read("SELECT max(seq) FROM events WHERE run_id = ?", [run_id])[0]
        return int(row[0] or 0)

    def post_command(self, run_id: str, action: str, args: JsonObject | None = None) -> int:
        """Ask the run's runner for something; the command's id. Raises `NotFound` for an unknown run."""
        with self.db.transaction() as db:
            if not self.db.read("SELECT 1 FROM runs WHERE run_id = ?", [run_id]):
                raise NotFound(f"no run {run_id!r}; `baton runs list` lists the runs")
            command = CommandRecord(
                command_id=0, run_id=run_id, action=action, args=args or {}, posted_at=now()
            )
            return COMMANDS.insert(db, command, skip=("command_id",))

    def take_commands(self, run_id: str, *, again: bool = False) -> list[CommandRecord]:
        """Commands nobody has taken yet, oldest first, now marked as taken.

        `again` also gives those that were taken and never answered: a runner starts with it, because its
        predecessor may have died over them.
        """
        states = ("posted", "taken") if again else ("posted", "posted")
        where = "run_id = ? AND state IN (?, ?)"
        if not self.db.read(f"SELECT 1 FROM commands WHERE {where} LIMIT 1", [run_id, *states]):
            return []  # asked often: the usual answer costs no write lock
        with self.db.transaction() as db:
            open_ones = self._many(COMMANDS, where, [run_id, *states], "command_id")
            taken = [
                command.model_copy(update={"state": CommandState.TAKEN, "taken_at": now()})
                for command in open_ones
            ]
            for old, new in zip(open_ones, taken, strict=True):
                COMMANDS.update(db, old, new)
        return taken

    def answer_command(self, command_id: int, result: JsonObject) -> bool:
        """Answer a command; False when it had been answered before, and the first answer stays."""
        with self.db.transaction() as db:
            old = self.command(command_id)
            if old.state is CommandState.ANSWERED:
                return False
            answer = {"state": CommandState.ANSWERED, "result": result, "answered_at": now()}
            COMMANDS.update(db, old, COMMANDS.revised(old, answer))
        return True

    def answer_open_commands(self, run_id: str, result: JsonObject) -> int:
        """Give every open command of a run the same answer: for a run that comes to rest. Their number."""
        with self.db.transaction():
            open_ones = self._many(COMMANDS, "run_id = ? AND state <> 'answered'", [run_id], "command_id")
            return sum(self.answer_command(command.command_id, result) for command in open_ones)

    def command(self, command_id: int) -> CommandRecord:
        """Raises `NotFound`."""
        return self._one(COMMANDS, command_id, what=f"command {command_id}")
