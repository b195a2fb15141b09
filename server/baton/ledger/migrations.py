"""The schema, as numbered steps that only ever add. A step, once released, is never changed.

A change of what a JSON column holds that older programs cannot read is a step as well, even an empty one: the
number is what makes them stop with one line.

A program that has the ledger open goes on when a newer one brings the schema up: every statement names its
columns, and new ones have defaults. So a runner finishes its run in the version that it was started from.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

Migration = Callable[[sqlite3.Connection], None]


def m001_runs(db: sqlite3.Connection) -> None:
    """Runs, tasks, attempts and tries to integrate."""
    db.execute(
        """CREATE TABLE runs (
            run_id TEXT PRIMARY KEY, workspace BLOB NOT NULL, repo_key TEXT NOT NULL, state TEXT NOT NULL,
            mode TEXT NOT NULL, integrate TEXT NOT NULL, background INTEGER NOT NULL,
            session TEXT NOT NULL, policy TEXT NOT NULL, options TEXT NOT NULL, program TEXT NOT NULL,
            base_commit TEXT, head_commit TEXT, integration TEXT, note TEXT,
            created_at REAL NOT NULL, updated_at REAL NOT NULL, ended_at REAL
        )"""
    )
    db.execute("CREATE INDEX runs_created ON runs (created_at)")
    db.execute("CREATE INDEX runs_state ON runs (state)")
    db.execute(
        """CREATE TABLE tasks (
            run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, task_id TEXT NOT NULL,
            position INTEGER NOT NULL, label TEXT, state TEXT NOT NULL, contract TEXT NOT NULL,
            depends_on TEXT NOT NULL, verdict TEXT, reasons TEXT NOT NULL, result TEXT, outcome TEXT NOT NULL,
            kept TEXT, created_at REAL NOT NULL, updated_at REAL NOT NULL, ended_at REAL,
            PRIMARY KEY (run_id, task_id)
        ) WITHOUT ROWID"""
    )
    db.execute(
        """CREATE TABLE attempts (
            run_id TEXT NOT NULL, task_id TEXT NOT NULL, attempt INTEGER NOT NULL, kind TEXT NOT NULL,
            step TEXT NOT NULL, base_commit TEXT, worktree BLOB, thread_id TEXT, route TEXT, "commit" TEXT,
            result TEXT, data TEXT NOT NULL,
            started_at REAL NOT NULL, updated_at REAL NOT NULL, ended_at REAL,
            PRIMARY KEY (run_id, task_id, attempt),
            FOREIGN KEY (run_id, task_id) REFERENCES tasks ON DELETE CASCADE
        ) WITHOUT ROWID"""
    )
    db.execute(
        """CREATE TABLE integrations (
            run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, number INTEGER NOT NULL,
            step TEXT NOT NULL, task_ids TEXT NOT NULL, workspace_commit TEXT, merged_commit TEXT,
            merged_tree TEXT, journal BLOB, checks TEXT NOT NULL, conflicts TEXT NOT NULL, detail TEXT,
            data TEXT NOT NULL, started_at REAL NOT NULL, updated_at REAL NOT NULL, ended_at REAL,
            PRIMARY KEY (run_id, number)
        ) WITHOUT ROWID"""
    )


def m002_stream(db: sqlite3.Connection) -> None:
    """Events, commands, processes and references to artifacts."""
    # Clustered by run and number: appending and reading on are both one walk, however many rows there are.
    db.execute(
        """CREATE TABLE events (
            run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, seq INTEGER NOT NULL,
            created_at REAL NOT NULL, kind TEXT NOT NULL, task_id TEXT, attempt INTEGER, data TEXT NOT NULL,
            PRIMARY KEY (run_id, seq)
        ) WITHOUT ROWID"""
    )
    db.execute("CREATE INDEX events_task ON events (run_id, task_id, seq) WHERE task_id IS NOT NULL")
    db.execute(
        """CREATE TABLE commands (
            command_id INTEGER PRIMARY KEY AUTOINCREMENT,
            run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, action TEXT NOT NULL, args TEXT NOT NULL,
            state TEXT NOT NULL, result TEXT, posted_at REAL NOT NULL, taken_at REAL, answered_at REAL
        )"""
    )
    db.execute("CREATE INDEX commands_open ON commands (run_id, state)")
    db.execute(
        """CREATE TABLE processes (
            process_id INTEGER PRIMARY KEY AUTOINCREMENT,
            run_id TEXT REFERENCES runs ON DELETE CASCADE, kind TEXT NOT NULL, pid INTEGER NOT NULL,
            start_time INTEGER NOT NULL, boot_id TEXT NOT NULL, pgid INTEGER, task_id TEXT, attempt INTEGER,
            started_at REAL NOT NULL, ended_at REAL, how TEXT
        )"""
    )
    db.execute("CREATE INDEX processes_run ON processes (run_id)")
    db.execute("CREATE INDEX processes_open ON processes (process_id) WHERE ended_at IS NULL")
    db.execute(
        """CREATE TABLE artifact_refs (
            run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, name TEXT NOT NULL,
            artifact TEXT NOT NULL, task_id TEXT, attempt INTEGER, size INTEGER NOT NULL,
            created_at REAL NOT NULL
        )"""
    )
    db.execute(
        "CREATE UNIQUE INDEX artifact_refs_once ON artifact_refs"
        " (run_id, name, artifact, ifnull(task_id, ''), ifnull(attempt, 0))"
    )
    db.execute("CREATE INDEX artifact_refs_artifact ON artifact_refs (artifact)")


def m003_tickets(db: sqlite3.Connection) -> None:
    """The queue for workers."""
    db.execute(
        """CREATE TABLE tickets (
            ticket INTEGER PRIMARY KEY AUTOINCREMENT,
            run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, task_id TEXT NOT NULL,
            queued_at REAL NOT NULL, started_at REAL
        )"""
    )


def m004_spared(db: sqlite3.Connection) -> None:
    """Runs that `baton gc` leaves alone."""
    db.execute("ALTER TABLE runs ADD COLUMN spared INTEGER NOT NULL DEFAULT 0")


def m005_pools(db: sqlite3.Connection) -> None:
    """Pools, their jobs, attempts, processes and artifacts."""
    db.execute(
        """CREATE TABLE pools (
            pool_id TEXT PRIMARY KEY, jobs_file BLOB NOT NULL, run_dir BLOB NOT NULL, state TEXT NOT NULL,
            settings TEXT NOT NULL, live TEXT NOT NULL, note TEXT, asked TEXT,
            created_at REAL NOT NULL, updated_at REAL NOT NULL, began_at REAL, ended_at REAL
        )"""
    )
    db.execute(
        """CREATE TABLE pool_jobs (
            pool_id TEXT NOT NULL REFERENCES pools ON DELETE CASCADE, job_id TEXT NOT NULL,
            position INTEGER NOT NULL, fingerprint TEXT NOT NULL, writes INTEGER NOT NULL,
            safe_retry INTEGER NOT NULL, state TEXT NOT NULL, touched INTEGER NOT NULL,
            named INTEGER NOT NULL, attempts INTEGER NOT NULL, reason TEXT, failure_class TEXT,
            thread_id TEXT, run_id TEXT,
            output TEXT, output_bytes INTEGER, tokens INTEGER, updated_at REAL NOT NULL, ended_at REAL,
            PRIMARY KEY (pool_id, job_id)
        ) WITHOUT ROWID"""
    )
    # Counting by state is what `status` does: it reads this index alone.
    db.execute("CREATE INDEX pool_jobs_state ON pool_jobs (pool_id, state, position)")
    db.execute("CREATE INDEX pool_jobs_fingerprint ON pool_jobs (fingerprint)")
    db.execute(
        """CREATE TABLE pool_attempts (
            pool_id TEXT NOT NULL, job_id TEXT NOT NULL, attempt INTEGER NOT NULL, backend TEXT NOT NULL,
            state TEXT NOT NULL, thread_id TEXT, resumed INTEGER NOT NULL, route TEXT,
            attested INTEGER NOT NULL, failure_class TEXT, message TEXT, usage TEXT, checks TEXT NOT NULL,
            notices TEXT NOT NULL, output TEXT, output_bytes INTEGER, log TEXT, run_id TEXT, writes_in BLOB,
            started_at REAL NOT NULL, ended_at REAL,
            PRIMARY KEY (pool_id, job_id, attempt),
            FOREIGN KEY (pool_id, job_id) REFERENCES pool_jobs ON DELETE CASCADE
        ) WITHOUT ROWID"""
    )
    db.execute("CREATE INDEX pool_attempts_open ON pool_attempts (pool_id) WHERE ended_at IS NULL")
    db.execute(
        """CREATE TABLE pool_processes (
            process_id INTEGER PRIMARY KEY AUTOINCREMENT,
            pool_id TEXT NOT NULL REFERENCES pools ON DELETE CASCADE, kind TEXT NOT NULL,
            pid INTEGER NOT NULL, start_time INTEGER NOT NULL, boot_id TEXT NOT NULL, ended_at REAL
        )"""
    )
    db.execute("CREATE INDEX pool_processes_open ON pool_processes (pool_id) WHERE ended_at IS NULL")
    db.execute(
        """CREATE TABLE pool_artifacts (
            artifact TEXT NOT NULL, pool_id TEXT NOT NULL REFERENCES pools ON DELETE CASCADE,
            size INTEGER NOT NULL, PRIMARY KEY (artifact, pool_id)
        ) WITHOUT ROWID"""
    )
    db.execute("CREATE INDEX pool_artifacts_pool ON pool_artifacts (pool_id)")


def m006_consultations(db: sqlite3.Connection) -> None:
    """Consultations, the questions put to agents, their artifacts, and the words to find them by."""
    db.execute(
        """CREATE TABLE consultations (
            consultation_id TEXT PRIMARY KEY, kind TEXT NOT NULL, parent TEXT, workspace BLOB,
            host TEXT NOT NULL, title TEXT, keeps_text INTEGER NOT NULL, state TEXT NOT NULL,
            cancel_asked REAL, starts INTEGER NOT NULL,
            created_at REAL NOT NULL, updated_at REAL NOT NULL, ended_at REAL
        )"""
    )
    db.execute("CREATE INDEX consultations_created ON consultations (created_at)")
    db.execute("CREATE INDEX consultations_parent ON consultations (parent) WHERE parent IS NOT NULL")
    db.execute("CREATE INDEX consultations_open ON consultations (consultation_id) WHERE ended_at IS NULL")
    db.execute(
        """CREATE TABLE consult_turns (
            turn INTEGER PRIMARY KEY AUTOINCREMENT,
            consultation_id TEXT NOT NULL REFERENCES consultations ON DELETE CASCADE,
            number INTEGER NOT NULL, round INTEGER NOT NULL, agent TEXT NOT NULL, runtime TEXT NOT NULL,
            asked_model TEXT, asked_effort TEXT, model TEXT, attested INTEGER NOT NULL,
            capability TEXT NOT NULL, persona TEXT, side TEXT, source_mode TEXT NOT NULL, sees TEXT NOT NULL,
            why TEXT NOT NULL, request TEXT NOT NULL, question TEXT, material TEXT NOT NULL,
            prompt_bytes INTEGER NOT NULL, state TEXT NOT NULL, answer TEXT, usage TEXT, cost REAL,
            session_id TEXT, failure TEXT, detail TEXT, notices TEXT NOT NULL, retry_after REAL,
            required_action TEXT, queued_at REAL NOT NULL, started_at REAL, ended_at REAL,
            UNIQUE (consultation_id, number)
        )"""
    )
    db.execute("CREATE INDEX consult_turns_open ON consult_turns (state, turn) WHERE ended_at IS NULL")
    db.execute("CREATE INDEX consult_turns_queued ON consult_turns (queued_at)")
    db.execute(
        """CREATE TABLE consult_artifacts (
            consultation_id TEXT NOT NULL REFERENCES consultations ON DELETE CASCADE,
            number INTEGER NOT NULL, name TEXT NOT NULL, artifact TEXT NOT NULL, size INTEGER NOT NULL,
            PRIMARY KEY (consultation_id, number, name)
        ) WITHOUT ROWID"""
    )
    db.execute("CREATE INDEX consult_artifacts_artifact ON consult_artifacts (artifact)")
    try:
        db.execute(
            "CREATE VIRTUAL TABLE consult_text USING fts5(question, answer, tokenize='porter unicode61')"
        )
    except sqlite3.OperationalError as error:
        # A SQLite without full-text search: everything else works, and searching says what is missing.
        if "no such module" not in str(error):
            raise


def m007_pauses(db: sqlite3.Connection) -> None:
    """Pauses that a service asked for."""
    db.execute(
        """CREATE TABLE pauses (
            model TEXT PRIMARY KEY, until REAL NOT NULL, why TEXT NOT NULL, noted_at REAL NOT NULL
        )"""
    )


def m008_reviews(db: sqlite3.Connection) -> None:
    """Reviews, their findings, and what became of them."""
    db.execute(
        """CREATE TABLE reviews (
            review_id TEXT PRIMARY KEY, parent TEXT, round INTEGER NOT NULL, workspace BLOB,
            mode TEXT NOT NULL, goal TEXT NOT NULL, state TEXT NOT NULL, plan TEXT NOT NULL,
            approval TEXT NOT NULL, token TEXT, confirmed_by TEXT, consultation_id TEXT,
            conclusion TEXT, note TEXT,
            created_at REAL NOT NULL, updated_at REAL NOT NULL, ended_at REAL
        )"""
    )
    db.execute("CREATE INDEX reviews_created ON reviews (created_at)")
    db.execute("CREATE INDEX reviews_consultation ON reviews (consultation_id)")
    db.execute(
        """CREATE TABLE review_findings (
            review_id TEXT NOT NULL REFERENCES reviews ON DELETE CASCADE, number INTEGER NOT NULL,
            source TEXT NOT NULL, turn INTEGER, carried TEXT, severity TEXT NOT NULL, title TEXT NOT NULL,
            detail TEXT, path TEXT, line INTEGER, confidence TEXT NOT NULL, suggestion TEXT,
            located TEXT NOT NULL, disposition TEXT NOT NULL, answered INTEGER NOT NULL, reason TEXT,
            PRIMARY KEY (review_id, number)
        ) WITHOUT ROWID"""
    )
    db.execute(
        """CREATE TABLE review_dispositions (
            entry INTEGER PRIMARY KEY AUTOINCREMENT,
            review_id TEXT NOT NULL REFERENCES reviews ON DELETE CASCADE, number INTEGER NOT NULL,
            disposition TEXT NOT NULL, reason TEXT, source TEXT NOT NULL, at REAL NOT NULL
        )"""
    )
    db.execute("CREATE INDEX review_dispositions_review ON review_dispositions (review_id)")
    db.execute(
        """CREATE TABLE review_reads (
            review_id TEXT NOT NULL REFERENCES reviews ON DELETE CASCADE, turn INTEGER NOT NULL,
            seat TEXT NOT NULL, parsed INTEGER NOT NULL, detail TEXT, rechecks TEXT NOT NULL,
            PRIMARY KEY (review_id, turn)
        ) WITHOUT ROWID"""
    )


def m009_workflows(db: sqlite3.Connection) -> None:
    """Workflows and every try at their steps."""
    db.execute(
        """CREATE TABLE workflows (
            workflow_id TEXT PRIMARY KEY, workspace BLOB NOT NULL, repo_key TEXT NOT NULL, goal TEXT NOT NULL,
            state TEXT NOT NULL, round INTEGER NOT NULL, terms TEXT NOT NULL, base TEXT NOT NULL,
            base_head TEXT, session TEXT NOT NULL, replan_token TEXT, note TEXT,
            created_at REAL NOT NULL, updated_at REAL NOT NULL, ended_at REAL
        )"""
    )
    db.execute("CREATE INDEX workflows_created ON workflows (created_at)")
    db.execute(
        """CREATE TABLE workflow_steps (
            workflow_id TEXT NOT NULL REFERENCES workflows ON DELETE CASCADE, number INTEGER NOT NULL,
            step TEXT NOT NULL, round INTEGER NOT NULL, binding TEXT NOT NULL, state TEXT NOT NULL,
            request TEXT NOT NULL, approval TEXT NOT NULL, token TEXT, consultation_id TEXT, run_id TEXT,
            review_id TEXT, product TEXT, base TEXT, result TEXT, tree TEXT, "commit" TEXT, report TEXT,
            output TEXT, detail TEXT, created_at REAL NOT NULL, started_at REAL, ended_at REAL,
            PRIMARY KEY (workflow_id, number)
        ) WITHOUT ROWID"""
    )


MIGRATIONS: tuple[Migration, ...] = (
    m001_runs,
    m002_stream,
    m003_tickets,
    m004_spared,
    m005_pools,
    m006_consultations,
    m007_pauses,
    m008_reviews,
    m009_workflows,
)


def schema_version(db: sqlite3.Connection) -> int:
    """How many steps this database has seen; more than `MIGRATIONS` has when a newer program wrote it."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(db: sqlite3.Connection) -> None:
    """Bring the database up to date. To be called inside a write transaction, so that one process does it."""
    for number, step in enumerate(MIGRATIONS[schema_version(db) :], start=schema_version(db) + 1):
        step(db)
        db.execute(f"PRAGMA user_version = {number:d}")
