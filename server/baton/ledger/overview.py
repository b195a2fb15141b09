"""Many runs at a glance: the few columns that lists need, read without whole records.

It loads neither pydantic nor the records, so that a program that only looks starts at once.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from baton.contract.states import RunState
from baton.ledger.database import Database
from baton.ledger.lines import (
    AttemptLine,
    AttemptSpent,
    EventLine,
    RunLine,
    TaskLine,
    read_attempt,
    read_event,
    read_run,
    read_spent,
    read_task,
)

UNFINISHED = tuple(state.value for state in RunState if not state.at_rest)

USAGE_KEYS = ("inputTokens", "cachedInputTokens", "outputTokens", "reasoningOutputTokens", "totalTokens")

MAX_OBJECTIVE = 200
"""Characters read of an objective, a reason or a text of an event."""


@dataclass(frozen=True)
class RunFilter:
    """Which runs a list shows; None and empty leave everything in."""

    states: tuple[str, ...] = ()
    workspace: str | None = None
    """A folder: runs in it and below it."""
    since: float | None = None
    until: float | None = None
    """Seconds since 1970: created from the one up to, not at, the other."""
    label: str | None = None
    """Part of the id, label or objective of one of its tasks; case does not count."""
    verdict: str | None = None
    """Of one of its tasks."""


class Overview:
    """Reads lists from an open database; changes nothing.

    Every method raises `StateUnavailable` for a record that this version does not understand.
    """

    def __init__(self, db: Database) -> None:
        self.db = db

    def runs(self, limit: int, chosen: RunFilter | None = None) -> list[RunLine]:
        """The newest runs that fit, at most `limit`."""
        where, values = where_runs(chosen or RunFilter())
        return self._runs(f"{where} ORDER BY created_at DESC, run_id LIMIT ?", [*values, limit])

    def run(self, run_id: str) -> RunLine | None:
        return next(iter(self._runs("run_id = ?", [run_id])), None)

    def unfinished(self) -> list[RunLine]:
        """Runs that are not at rest, the newest first."""
        return self._runs(f"state IN ({_marks(UNFINISHED)}) ORDER BY created_at DESC, run_id", UNFINISHED)

    def unfinished_since(self, moment: float) -> list[str]:
        """Ids of the runs that are not at rest, and of those that came to rest at `moment` or later."""
        sql = f"SELECT run_id FROM runs WHERE state IN ({_marks(UNFINISHED)}) OR ended_at >= ?"
        return [str(row[0]) for row in self.db.read(sql, [*UNFINISHED, moment])]

    def may_need_recovery(self) -> bool:
        """Whether a run is not at rest, or a process of one has not been seen to end."""
        sql = (
            f"SELECT EXISTS (SELECT 1 FROM runs WHERE state IN ({_marks(UNFINISHED)}))"
            " OR EXISTS (SELECT 1 FROM processes WHERE ended_at IS NULL)"
        )
        return bool(self.db.read(sql, UNFINISHED)[0][0])

    def counts(self, run_ids: Sequence[str]) -> dict[str, dict[str, int]]:
        """How many tasks of each run are in which state."""
        found: dict[str, dict[str, int]] = {run_id: {} for run_id in run_ids}
        sql = (
            f"SELECT run_id, state, count(*) FROM tasks WHERE run_id IN ({_marks(run_ids)})"
            " GROUP BY run_id, state"
        )
        for run_id, state, count in self.db.read(sql, run_ids):
            found[run_id][state] = count
        return found

    def tasks(self, run_id: str, offset: int = 0, limit: int = -1) -> list[TaskLine]:
        """The tasks of a run in their order: from number `offset` on, at most `limit` unless that is -1."""
        sql = (
            "SELECT task_id, position, label, substr(json_extract(contract, '$.objective'), 1, ?1), state,"
            " verdict, json_extract(outcome, '$.integration'), json_extract(outcome, '$.detail'),"
            " substr(json_extract(reasons, '$[0]'), 1, ?1), depends_on, created_at, updated_at, ended_at"
            " FROM tasks WHERE run_id = ?2 ORDER BY position, task_id LIMIT ?3 OFFSET ?4"
        )
        return [read_task(row) for row in self.db.read(sql, [MAX_OBJECTIVE, run_id, limit, offset])]

    def attempts(self, run_id: str) -> list[AttemptLine]:
        """All attempts of a run, by task and number."""
        sql = (
            "SELECT task_id, attempt, kind, step, json_extract(route, '$.model'),"
            " json_extract(route, '$.effort'), ifnull(json_extract(route, '$.deviates'), 0),"
            " json_extract(result, '$.usage.totalTokens'),"
            " (SELECT json_group_object(status, number) FROM (SELECT json_extract(value, '$.status')"
            " AS status, count(*) AS number FROM json_each(result, '$.evidence.checks') GROUP BY 1)),"
            " ifnull(json_array_length(result, '$.evidence.scope.violations'), 0), started_at"
            " FROM attempts WHERE run_id = ? ORDER BY task_id, attempt"
        )
        return [read_attempt(row) for row in self.db.read(sql, [run_id])]

    def last_event(self, run_id: str, task_id: str | None = None) -> EventLine | None:
        """The last event of a run, or of one of its tasks."""
        return next(iter(self._events("1 ORDER BY seq DESC LIMIT 1", [], run_id, task_id)), None)

    def events(self, run_id: str, after: int, limit: int) -> list[EventLine]:
        """Events with a number greater than `after`, oldest first."""
        return self._events("seq > ? ORDER BY seq LIMIT ?", [after, limit], run_id)

    def last_seq_before(self, run_id: str, moment: float) -> int:
        """The number of the run's last event before `moment`, 0 when there is none."""
        sql = "SELECT seq FROM events WHERE run_id = ? AND created_at < ? ORDER BY seq DESC LIMIT 1"
        return next((int(row[0]) for row in self.db.read(sql, [run_id, moment])), 0)

    def integrating(self, run_id: str) -> tuple[int, str] | None:
        """Number and step of the last try to integrate."""
        sql = "SELECT number, step FROM integrations WHERE run_id = ? ORDER BY number DESC LIMIT 1"
        row = next(iter(self.db.read(sql, [run_id])), None)
        return None if row is None else (int(row[0]), str(row[1]))

    def attempts_since(self, since: float) -> list[AttemptSpent]:
        """Every attempt that began at `since` or later."""
        usage = ", ".join(f"json_extract(a.result, '$.usage.{key}')" for key in USAGE_KEYS)
        sql = (
            "SELECT a.run_id, a.task_id, r.workspace, json_extract(a.route, '$.model'),"
            " json_extract(a.route, '$.tier'), json_extract(a.route, '$.role'), t.verdict,"
            " NOT EXISTS (SELECT 1 FROM attempts b WHERE b.run_id = a.run_id AND b.task_id = a.task_id"
            f" AND b.attempt > a.attempt), {usage} FROM attempts a JOIN runs r USING (run_id)"
            " JOIN tasks t USING (run_id, task_id) WHERE a.started_at >= ? ORDER BY a.started_at"
        )
        return [read_spent(row) for row in self.db.read(sql, [since])]

    def pool_attempts_since(self, since: float) -> list[tuple[str | None, dict[str, int | None]]]:
        """Model and tokens of the attempts at jobs of pools; without those whose work is in a run."""
        usage = ", ".join(f"json_extract(usage, '$.{key}')" for key in USAGE_KEYS)
        sql = (
            f"SELECT json_extract(route, '$.model'), {usage} FROM pool_attempts"
            " WHERE started_at >= ? AND run_id IS NULL AND state <> 'unstarted'"
        )
        rows = self.db.read(sql, [since])
        return [(row[0], dict(zip(USAGE_KEYS, tuple(row)[1:], strict=True))) for row in rows]

    def supervised_since(self, since: float) -> list[tuple[str, str, float, float | None]]:
        """Workspace, threads as a JSON array, beginning and end of every run begun at `since` or later."""
        sql = (
            "SELECT workspace, ifnull(json_extract(options, '$.supervisors'), '[]'), created_at, ended_at"
            " FROM runs WHERE created_at >= ? ORDER BY created_at"
        )
        return [(os.fsdecode(row[0]), row[1], row[2], row[3]) for row in self.db.read(sql, [since])]

    def _runs(self, where: str, values: Sequence[object]) -> list[RunLine]:
        sql = (
            "SELECT run_id, workspace, repo_key, state, mode, background, spared, integration, note, program,"
            " json_extract(session, '$.threadId'), json_extract(session, '$.model'),"
            f" created_at, updated_at, ended_at FROM runs WHERE {where}"
        )
        return [read_run(row) for row in self.db.read(sql, values)]

    def _events(
        self, where: str, values: Sequence[object], run_id: str, task_id: str | None = None
    ) -> list[EventLine]:
        """Events of a run, or of one of its tasks, that fit."""
        # Left to itself SQLite walks through all events of the run to save itself the sorting.
        index, own = ("", "") if task_id is None else ("INDEXED BY events_task", "task_id = ? AND")
        sql = (
            f"SELECT run_id, seq, created_at, kind, task_id, attempt, data FROM events {index}"
            f" WHERE run_id = ? AND {own} {where}"
        )
        named = [run_id] if task_id is None else [run_id, task_id]
        return [read_event(row) for row in self.db.read(sql, [*named, *values])]


def where_runs(chosen: RunFilter) -> tuple[str, list[object]]:
    """The condition on `runs`, and its values."""
    parts, values = ["1"], list[object]()
    if chosen.states:
        parts.append(f"state IN ({_marks(chosen.states)})")
        values += chosen.states
    if chosen.workspace is not None:
        folder = os.fsencode(chosen.workspace)
        below = folder.rstrip(b"/") + b"/"
        parts.append("(workspace = ? OR substr(workspace, 1, ?) = ?)")
        values += [folder, len(below), below]
    if chosen.since is not None:
        parts.append("created_at >= ?")
        values.append(chosen.since)
    if chosen.until is not None:
        parts.append("created_at < ?")
        values.append(chosen.until)
    if chosen.label is not None:
        parts.append(
            "EXISTS (SELECT 1 FROM tasks WHERE tasks.run_id = runs.run_id AND instr(lower("
            "task_id || char(10) || ifnull(label, '') || char(10) || json_extract(contract, '$.objective')"
            "), lower(?)))"
        )
        values.append(chosen.label)
    if chosen.verdict is not None:
        parts.append("EXISTS (SELECT 1 FROM tasks WHERE tasks.run_id = runs.run_id AND verdict = ?)")
        values.append(chosen.verdict)
    return " AND ".join(parts), values


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
