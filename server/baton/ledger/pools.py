"""Pools in the ledger: what is written per job is constant, however many jobs there are."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from baton.contract.errors import NotFound, WrongState
from baton.ledger.base import Part, now
from baton.ledger.pool_records import (
    JobState,
    PoolAttemptRecord,
    PoolJobRecord,
    PoolProcessRecord,
    PoolRecord,
    PoolState,
)
from baton.ledger.tables import POOL_ATTEMPTS, POOL_JOBS, POOL_PROCESSES, POOLS

_LISTED = "`baton pool list` lists the pools"

_KNOWN_AT_ONCE = 500
"""Fingerprints looked up by one query."""


@dataclass(frozen=True, slots=True)
class KnownJob:
    """What the ledger knows of a job from before."""

    position: int
    fingerprint: str
    safe_retry: bool
    state: JobState
    attempts: int
    output: str | None
    output_bytes: int | None
    touched: bool
    named: bool
    thread_id: str | None
    run_id: str | None


class Pools(Part):
    """Pools, jobs, attempts. Each change is one transaction, durable unless told otherwise."""

    def create_pool(self, pool: PoolRecord) -> PoolRecord:
        """Record a pool without jobs. Times are set here."""
        made = pool.model_copy(update={"created_at": now(), "updated_at": now()})
        with self.db.transaction() as db:
            POOLS.insert(db, made)
        return made

    def pool(self, pool_id: str) -> PoolRecord:
        """Raises `NotFound`."""
        rows = self.db.read(POOLS.select_one(), [pool_id])
        if not rows:
            raise NotFound(f"no pool {pool_id!r}; {_LISTED}")
        return POOLS.read(rows[0])

    def pools(
        self, limit: int = 50, offset: int = 0, *, states: Collection[PoolState] | None = None
    ) -> list[PoolRecord]:
        """The newest pools first, from number `offset` on, at most `limit`; -1 for all."""
        where, values = "1", list[object]()
        if states is not None:
            where, values = f"state IN ({_marks(states)})", [state.value for state in states]
        order = "created_at DESC, pool_id LIMIT ? OFFSET ?"
        return self._many(POOLS, where, [*values, limit, offset], order)

    def update_pool(self, pool_id: str, *, durable: bool = True, **fields: object) -> PoolRecord:
        """Change fields of a pool; the new record. Raises `NotFound`."""
        with self.db.transaction(durable=durable) as db:
            old = self.pool(pool_id)
            new = POOLS.revised(old, {**fields, "updated_at": now()})
            POOLS.update(db, old, new)
        return new

    def delete_pool(self, pool_id: str) -> None:
        """Forget a pool; its artifacts become unneeded. Raises `NotFound`, and `WrongState` while it runs."""
        with self.db.transaction() as db:
            if self.pool(pool_id).state is PoolState.RUNNING:
                raise WrongState(f"pool {pool_id} is running; cancel it first")
            db.execute("DELETE FROM pools WHERE pool_id = ?", [pool_id])

    # -- jobs --------------------------------------------------------------------------------------

    def add_pool_jobs(self, jobs: Iterable[PoolJobRecord]) -> None:
        """Record jobs; one that is there already is replaced, its attempts stay."""
        at = now()
        columns = [name for name in PoolJobRecord.model_fields if name not in ("pool_id", "job_id")]
        names = ", ".join(columns)
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
        with self.db.transaction() as db:
            db.executemany(
                f"INSERT INTO pool_jobs (pool_id, job_id, {names})"
                f" VALUES (?, ?, {', '.join('?' * len(columns))})"
                f" ON CONFLICT (pool_id, job_id) DO UPDATE SET {changes}",
                (
                    [
                        job.pool_id,
                        job.job_id,
                        *(
                            at if name == "updated_at" else POOL_JOBS.stored(name, getattr(job, name))
                            for name in columns
                        ),
                    ]
                    for job in jobs
                ),
            )

    def pool_job(self, pool_id: str, job_id: str) -> PoolJobRecord:
        """Raises `NotFound`."""
        rows = self.db.read(POOL_JOBS.select_one(), [pool_id, job_id])
        if not rows:
            raise NotFound(f"no job {job_id!r} in pool {pool_id}; `baton pool status {pool_id}` counts them")
        return POOL_JOBS.read(rows[0])

    def pool_jobs(
        self,
        pool_id: str,
        *,
        states: Collection[JobState] | None = None,
        after: int = -1,
        offset: int = 0,
        limit: int = -1,
    ) -> list[PoolJobRecord]:
        """Jobs in the order of the file whose position is greater than `after`.

        Of those from number `offset` on, at most `limit`.
        """
        where, values = "pool_id = ? AND position > ?", list[object]([pool_id, after])
        if states is not None:
            where += f" AND state IN ({_marks(states)})"
            values += [state.value for state in states]
        return self._many(POOL_JOBS, where, [*values, limit, offset], "position, job_id LIMIT ? OFFSET ?")

    def pool_job_states(self, pool_id: str, *, fresh: bool = True) -> dict[str, KnownJob]:
        """Of every job what a new invocation has to know; unless `fresh`, without those that only wait for
        their first attempt."""
        rows = self.db.read(
            "SELECT job_id, position, fingerprint, safe_retry, state, attempts, output, output_bytes,"
            " touched, named, thread_id, run_id FROM pool_jobs WHERE pool_id = ?"
            + ("" if fresh else " AND (state <> 'queued' OR attempts > 0 OR touched OR named)"),
            [pool_id],
        )
        return {
            row[0]: KnownJob(
                position=row[1],
                fingerprint=row[2],
                safe_retry=bool(row[3]),
                state=JobState(row[4]),
                attempts=row[5],
                output=row[6],
                output_bytes=row[7],
                touched=bool(row[8]),
                named=bool(row[9]),
                thread_id=row[10],
                run_id=row[11],
            )
            for row in rows
        }

    def pool_counts(self, pool_id: str) -> dict[JobState, int]:
        """How many jobs are in each state; states without any are left out."""
        rows = self.db.read(
            "SELECT state, count(*) FROM pool_jobs WHERE pool_id = ? GROUP BY state", [pool_id]
        )
        return {JobState(row[0]): int(row[1]) for row in rows}

    def pool_finished_since(self, pool_id: str, moment: float | None) -> int:
        """How many jobs came to rest by an attempt since `moment`; 0 for None."""
        row = self.db.read(
            "SELECT count(*) FROM pool_jobs WHERE pool_id = ? AND ended_at >= ? AND attempts > 0",
            [pool_id, moment],
        )[0]
        return int(row[0])

    def pool_tokens(self, pool_id: str) -> int | None:
        """Tokens of all attempts; None when none is known."""
        row = self.db.read("SELECT sum(tokens) FROM pool_jobs WHERE pool_id = ?", [pool_id])[0]
        return None if row[0] is None else int(row[0])

    def pools_of_fingerprints(self, fingerprints: Sequence[str]) -> dict[str, int]:
        """The pools that know some of these jobs, with how many."""
        found: dict[str, int] = {}
        for start in range(0, len(fingerprints), _KNOWN_AT_ONCE):
            some = fingerprints[start : start + _KNOWN_AT_ONCE]
            rows = self.db.read(
                f"SELECT pool_id, count(*) FROM pool_jobs WHERE fingerprint IN ({_marks(some)})"
                " GROUP BY pool_id",
                list(some),
            )
            for row in rows:
                found[row[0]] = found.get(row[0], 0) + int(row[1])
        return found

    def settle_pool_jobs(self, pool_id: str, fields: Mapping[str, Mapping[str, object]]) -> None:
        """Change fields of several jobs, by job id, in one transaction."""
        if not fields:
            return
        at = now()
        with self.db.transaction() as db:
            for job_id, changed in fields.items():
                values = {**changed, "updated_at": at}
                assignments = ", ".join(f"{name} = ?" for name in values)
                stored = [POOL_JOBS.stored(name, value) for name, value in values.items()]
                db.execute(
                    f"UPDATE pool_jobs SET {assignments} WHERE pool_id = ? AND job_id = ?",
                    [*stored, pool_id, job_id],
                )

    # -- attempts ----------------------------------------------------------------------------------

    def begin_pool_attempt(self, attempt: PoolAttemptRecord) -> None:
        """Record an attempt before anything of it is done; its job is then running."""
        made = attempt if attempt.started_at else attempt.model_copy(update={"started_at": now()})
        with self.db.transaction() as db:
            POOL_ATTEMPTS.insert(db, made)
            db.execute(
                "UPDATE pool_jobs"
                " SET state = ?, attempts = ?, touched = 1, named = 0, reason = NULL, updated_at = ?"
                " WHERE pool_id = ? AND job_id = ?",
                [JobState.RUNNING.value, made.attempt, made.started_at, made.pool_id, made.job_id],
            )

    def name_pool_thread(self, pool_id: str, job_id: str, attempt: int, thread_id: str) -> None:
        """Note the thread that an attempt works in, so that it can be resumed."""
        with self.db.transaction(durable=False) as db:
            db.execute(
                "UPDATE pool_attempts SET thread_id = ? WHERE pool_id = ? AND job_id = ? AND attempt = ?",
                [thread_id, pool_id, job_id, attempt],
            )
            db.execute(
                "UPDATE pool_jobs SET thread_id = ? WHERE pool_id = ? AND job_id = ?",
                [thread_id, pool_id, job_id],
            )

    def name_pool_run(self, pool_id: str, job_id: str, attempt: int, run_id: str) -> None:
        """Note the run that does the work of an isolated job."""
        with self.db.transaction() as db:
            db.execute(
                "UPDATE pool_attempts SET run_id = ? WHERE pool_id = ? AND job_id = ? AND attempt = ?",
                [run_id, pool_id, job_id, attempt],
            )
            db.execute(
                "UPDATE pool_jobs SET run_id = ? WHERE pool_id = ? AND job_id = ?", [run_id, pool_id, job_id]
            )

    def end_pool_attempt(self, attempt: PoolAttemptRecord, job: Mapping[str, object]) -> None:
        """Record how an attempt ended and what its job is then: all facts of a finished job at once."""
        ended = attempt.ended_at or now()
        columns = [
            *(
                "state",
                "thread_id",
                "run_id",
                "resumed",
                "route",
                "attested",
                "failure_class",
                "message",
                "usage",
                "checks",
            ),
            *("notices", "output", "output_bytes", "log"),
        ]
        spent = attempt.usage.total_tokens if attempt.usage is not None else None
        with self.db.transaction() as db:
            db.execute(
                f"UPDATE pool_attempts SET {', '.join(f'{name} = ?' for name in columns)}, ended_at = ?"
                " WHERE pool_id = ? AND job_id = ? AND attempt = ?",
                [
                    *(POOL_ATTEMPTS.stored(name, getattr(attempt, name)) for name in columns),
                    *(ended, attempt.pool_id, attempt.job_id, attempt.attempt),
                ],
            )
            values = {**job, "updated_at": ended}
            assignments = "".join(f", {name} = ?" for name in values)
            db.execute(
                "UPDATE pool_jobs SET tokens = CASE WHEN ?1 IS NULL THEN tokens"
                f" ELSE ifnull(tokens, 0) + ?1 END{assignments} WHERE pool_id = ? AND job_id = ?",
                [
                    spent,
                    *(POOL_JOBS.stored(name, value) for name, value in values.items()),
                    *(attempt.pool_id, attempt.job_id),
                ],
            )
            if attempt.output is not None:
                db.execute(
                    "INSERT OR IGNORE INTO pool_artifacts (artifact, pool_id, size) VALUES (?, ?, ?)",
                    [attempt.output, attempt.pool_id, attempt.output_bytes or 0],
                )
            for check in attempt.checks:
                if check.output is not None:
                    db.execute(
                        "INSERT OR IGNORE INTO pool_artifacts (artifact, pool_id, size) VALUES (?, ?, ?)",
                        [check.output, attempt.pool_id, check.output_bytes],
                    )

    def pool_attempts(self, pool_id: str, job_id: str | None = None) -> list[PoolAttemptRecord]:
        """The attempts at one job, or at all jobs of a pool, in their order."""
        if job_id is None:
            return self._many(POOL_ATTEMPTS, "pool_id = ?", [pool_id], "job_id, attempt")
        where = "pool_id = ? AND job_id = ?"
        return self._many(POOL_ATTEMPTS, where, [pool_id, job_id], "attempt")

    def open_pool_attempts(self, pool_id: str) -> list[PoolAttemptRecord]:
        """Attempts that began and whose end nobody recorded."""
        return self._many(POOL_ATTEMPTS, "pool_id = ? AND ended_at IS NULL", [pool_id], "job_id, attempt")

    def open_pool_writers(self, but: str) -> list[str]:
        """The directories in which attempts of other pools than `but` may write, or have been cut."""
        rows = self.db.read(
            "SELECT DISTINCT writes_in FROM pool_attempts"
            " WHERE ended_at IS NULL AND writes_in IS NOT NULL AND pool_id <> ?",
            [but],
        )
        return [os.fsdecode(row[0]) for row in rows]

    def unsettled_pools(self) -> list[str]:
        """Pools that run, and those that left attempts or processes whose end nobody recorded."""
        rows = self.db.read(
            "SELECT pool_id FROM pools WHERE state = 'running'"
            " UNION SELECT pool_id FROM pool_attempts WHERE ended_at IS NULL"
            " UNION SELECT pool_id FROM pool_processes WHERE ended_at IS NULL"
        )
        return [row[0] for row in rows]

    # -- processes ---------------------------------------------------------------------------------

    def record_pool_process(self, process: PoolProcessRecord) -> int:
        """Record a started process; its id in the ledger. Not durable: it ends with the machine."""
        with self.db.transaction(durable=False) as db:
            return POOL_PROCESSES.insert(db, process, skip=("process_id",))

    def end_pool_process(self, process_id: int) -> None:
        """Note that it has ended."""
        with self.db.transaction(durable=False) as db:
            db.execute("UPDATE pool_processes SET ended_at = ? WHERE process_id = ?", [now(), process_id])

    def pool_processes(self, pool_id: str) -> list[PoolProcessRecord]:
        """Those of a pool that are not known to have ended."""
        return self._many(POOL_PROCESSES, "pool_id = ? AND ended_at IS NULL", [pool_id], "process_id")


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
