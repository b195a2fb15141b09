"""Opening the database: create, migrate, refuse a newer one, set a damaged one aside; never quietly empty."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from baton.contract.errors import StateUnavailable
from baton.ledger.faults import is_damage, mark_of_damage, said_in_one_line
from baton.ledger.locks import FileLock
from baton.ledger.migrations import MIGRATIONS, migrate, schema_version
from baton.ledger.state import StateFolder

BUSY_SECONDS = 30.0

LOCK_SECONDS = 30.0

JOURNAL_BYTES = 4 * 2**20
"""What a log that begins anew is cut down to."""


def make_ready(state: StateFolder) -> None:
    """Make sure that a sound database of our schema is there.

    Raises `StateUnavailable` when a newer Baton wrote it, when the disk refuses, and, once, when it is
    damaged or has vanished: what is left of it is then renamed, never deleted, and the next call starts anew.
    """
    database = state.database
    if _is_ready(database):
        return
    with FileLock(state.maintenance_lock, timeout=LOCK_SECONDS):
        _refuse_vanished(state)
        fault = _fault(database)
        if fault is not None:
            _put_aside(state, fault)
        try:
            with said_in_one_line(database):
                _create_or_migrate(database)
            _created_note(state).touch(mode=0o600)
        except OSError as error:
            raise StateUnavailable(
                f"the database {database} cannot be made ({error.strerror}); make room, or make it writable"
            ) from None


def connect(database: Path) -> sqlite3.Connection:
    """A connection with the settings that durability rests on; transactions are begun explicitly."""
    connection = sqlite3.connect(
        database, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES}")
        connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_ready(database: Path) -> bool:
    """The quick look of the usual case. Anything odd is left to the slow look under the lock."""
    if mark_of_damage(database).exists() or not _has_content(database):
        return False
    try:
        with closing(connect(database)) as db:
            version = schema_version(db)
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        if is_damage(error):
            return False
        with said_in_one_line(database):
            raise
    _refuse_newer(database, version)
    return version == len(MIGRATIONS)


def _fault(database: Path) -> str | None:
    """What is wrong with the file, examined as thoroughly as there is reason to."""
    if not _has_content(database):
        return None
    try:
        with closing(connect(database)) as db:
            _refuse_newer(database, schema_version(db))
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if mark_of_damage(database).exists():
                found: str = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
                return None if found == "ok" else found
    except sqlite3.Error as error:
        if is_damage(error):
            return str(error)
        with said_in_one_line(database):
            raise
    return None


def _put_aside(state: StateFolder, fault: str) -> None:
    kept = _unused_name(state.database)
    try:
        # All parts get their second name before one loses its first: whenever we die, nothing is lost.
        parts = [state.database.with_name(state.database.name + suffix) for suffix in ("", "-wal", "-shm")]
        there = [part for part in parts if part.exists()]
        for part in there:
            kept.with_name(kept.name + part.name.removeprefix(state.database.name)).hardlink_to(part)
        for part in there:
            part.unlink()
        mark_of_damage(state.database).unlink(missing_ok=True)
        _created_note(state).unlink(missing_ok=True)
    except OSError as error:
        raise StateUnavailable(
            f"the database {state.database} is damaged ({fault}) and cannot be renamed ({error.strerror});"
            " move it away yourself"
        ) from None
    raise StateUnavailable(
        f"the database was damaged ({fault}) and is kept as {kept}; runs in it are not listed any more, their"
        f" results stay in {state.repos}; the next call starts a new one"
    )


def _refuse_vanished(state: StateFolder) -> None:
    if _created_note(state).exists() and not _has_content(state.database):
        _created_note(state).unlink()
        raise StateUnavailable(
            f"the database {state.database} has vanished or was emptied; results of earlier runs stay in"
            f" {state.repos}; the next call starts a new one"
        )


def _create_or_migrate(database: Path) -> None:
    # Made by us first, so that it and the files SQLite puts beside it are 0600 under any umask. One that
    # exists is opened by SQLite alone: closing it again would drop the locks of all connections of this
    # process, and whoever then believes to be the last one out deletes the log under them.
    with suppress(FileExistsError):
        os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(connect(database)) as db:
        db.execute("BEGIN IMMEDIATE")
        try:
            _refuse_newer(database, schema_version(db))
            migrate(db)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    mark_of_damage(database).unlink(missing_ok=True)


def _created_note(state: StateFolder) -> Path:
    return state.database.with_name(state.database.name + ".created")


def _refuse_newer(database: Path, version: int) -> None:
    if version > len(MIGRATIONS):
        raise StateUnavailable(
            f"{database} was written by a newer Baton (schema {version}, this one knows {len(MIGRATIONS)});"
            " update this Baton, or end the older sessions that still run it"
        )


def _has_content(database: Path) -> bool:
    try:
        return database.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StateUnavailable(f"the database {database} cannot be read ({error.strerror})") from None


def _unused_name(database: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    name, number = f"{database.name}.damaged-{stamp}", 1
    while database.with_name(name).exists():
        number += 1
        name = f"{database.name}.damaged-{stamp}-{number}"
    return database.with_name(name)
