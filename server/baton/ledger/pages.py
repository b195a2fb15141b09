"""Long lists by pages: runs, tasks and events, each page read alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from baton.ledger.lines import AttemptLine, EventLine, RunLine, TaskLine, stored_json
from baton.ledger.overview import Overview, RunFilter, where_runs


@dataclass(frozen=True)
class Spent:
    """Tokens of all attempts with one model, as far as known. A figure that no attempt told is None."""

    model: str | None
    """None: not known."""
    attempts: int
    unknown: int
    """Attempts whose tokens are not known, or not yet."""
    input_tokens: int | None
    cached_input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None


class Pages(Overview):
    """Reads one page of a list; changes nothing."""

    def runs_page(self, offset: int, limit: int, chosen: RunFilter | None = None) -> list[RunLine]:
        """Runs that fit, the newest first, from number `offset` on."""
        where, values = where_runs(chosen or RunFilter())
        order = "ORDER BY created_at DESC, run_id LIMIT ? OFFSET ?"
        return self._runs(f"{where} {order}", [*values, limit, offset])

    def run_count(self, chosen: RunFilter | None = None) -> int:
        """How many runs fit."""
        where, values = where_runs(chosen or RunFilter())
        return int(self.db.read(f"SELECT count(*) FROM runs WHERE {where}", values)[0][0])

    def verdicts(self, run_ids: Sequence[str]) -> dict[str, dict[str, int]]:
        """How many tasks of each run have which verdict or, without one, are in which state."""
        found: dict[str, dict[str, int]] = {run_id: {} for run_id in run_ids}
        sql = (
            "SELECT run_id, ifnull(verdict, state), count(*) FROM tasks"
            f" WHERE run_id IN ({', '.join('?' * len(run_ids))}) GROUP BY 1, 2 ORDER BY 1, 2"
        )
        for run_id, word, count in self.db.read(sql, run_ids):
            found[run_id][word] = count
        return found

    def first_tasks(self, run_ids: Sequence[str]) -> dict[str, TaskLine]:
        """The first task of each run."""
        found = {}
        for run_id in run_ids:
            for task in self.tasks(run_id, limit=1):
                found[run_id] = task
        return found

    def task_count(self, run_id: str) -> int:
        return int(self.db.read("SELECT count(*) FROM tasks WHERE run_id = ?", [run_id])[0][0])

    def dependencies(self, run_id: str) -> list[tuple[str, tuple[str, ...]]]:
        """Ids of all tasks of a run in their order, with what each depends on."""
        sql = "SELECT task_id, depends_on FROM tasks WHERE run_id = ? ORDER BY position, task_id"
        return [
            (task_id, tuple(stored_json(listed, list, f"task {task_id}")))
            for task_id, listed in self.db.read(sql, [run_id])
        ]

    def words(self, run_id: str) -> dict[str, str]:
        """Verdict or, without one, state of every task of a run."""
        rows = self.db.read("SELECT task_id, ifnull(verdict, state) FROM tasks WHERE run_id = ?", [run_id])
        return {str(task_id): str(word) for task_id, word in rows}

    def landed(self, run_id: str) -> dict[str, int]:
        """How many results of a run are where: applied, held …; undecided ones are left out."""
        sql = (
            "SELECT json_extract(outcome, '$.integration') AS place, count(*) FROM tasks"
            " WHERE run_id = ? AND place IS NOT NULL GROUP BY 1 ORDER BY 1"
        )
        return {str(place): int(count) for place, count in self.db.read(sql, [run_id])}

    def attempts_of(self, run_id: str, task_ids: Sequence[str]) -> dict[str, list[AttemptLine]]:
        """The attempts at these tasks."""
        found: dict[str, list[AttemptLine]] = {task_id: [] for task_id in task_ids}
        for attempt in self.attempts(run_id):
            if attempt.task_id in found:
                found[attempt.task_id].append(attempt)
        return found

    def happenings(self, run_id: str, after: int = 0) -> list[EventLine]:
        """All events of a run from number `after` on but those of its workers.

        What they carry is read only where they tell of the run itself.
        """
        sql = (
            "SELECT seq, created_at, kind, task_id, attempt,"
            " CASE WHEN kind GLOB 'run.*' THEN data END FROM events"
            " WHERE run_id = ? AND seq > ? AND kind NOT GLOB 'worker.*' AND kind <> 'check' ORDER BY seq"
        )
        return [
            EventLine(
                run_id,
                seq,
                at,
                kind,
                task_id,
                attempt,
                stored_json(data or "{}", dict, f"event {seq} of run {run_id}"),
            )
            for seq, at, kind, task_id, attempt, data in self.db.read(sql, [run_id, after])
        ]

    def events_page(self, run_id: str, after: int, limit: int, task_id: str | None = None) -> list[EventLine]:
        """Events of a run, or of one of its tasks, with a number greater than `after`, oldest first."""
        return self._events("seq > ? ORDER BY seq LIMIT ?", [after, limit], run_id, task_id)

    def events_before(
        self, run_id: str, before: int, limit: int, task_id: str | None = None
    ) -> list[EventLine]:
        """The last events with a number less than `before`, oldest first."""
        return self._events("seq < ? ORDER BY seq DESC LIMIT ?", [before, limit], run_id, task_id)[::-1]

    def spent(self, run_id: str) -> list[Spent]:
        """Tokens of all attempts of a run, by model."""
        figures = ("inputTokens", "cachedInputTokens", "outputTokens", "totalTokens")
        sums = ", ".join(f"sum(json_extract(result, '$.usage.{name}'))" for name in figures)
        sql = (
            "SELECT json_extract(route, '$.model') AS model, count(*),"
            f" sum(json_extract(result, '$.usage.totalTokens') IS NULL), {sums}"
            " FROM attempts WHERE run_id = ? GROUP BY 1 ORDER BY 2 DESC"
        )
        return [Spent(*row) for row in self.db.read(sql, [run_id])]

    def providers(self, run_ids: Sequence[str]) -> dict[str, set[str]]:
        """The model providers that each run's attempts had, as far as known."""
        found: dict[str, set[str]] = {run_id: set() for run_id in run_ids}
        sql = (
            "SELECT DISTINCT run_id, json_extract(route, '$.provider') FROM attempts"
            f" WHERE run_id IN ({', '.join('?' * len(run_ids))})"
        )
        for run_id, provider in self.db.read(sql, run_ids):
            if provider is not None:
                found[run_id].add(provider)
        return found
