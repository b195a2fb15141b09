"""SQLite's errors, said in one line each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from baton.contract.errors import BatonError, Busy, StateUnavailable

DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

UNDECODABLE = "Could not decode to UTF-8"
"""How Python's module begins to say that a text is none. Nothing but UTF-8 is ever stored: see `text.py`."""

MALFORMED = "malformed JSON"
"""How SQLite says that a text is no JSON. Nothing else is ever stored where it is asked for."""

MAX_REASON = 120


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the error says that the file's content is broken, not that it cannot be reached."""
    return _primary_code(error) in DAMAGE or str(error).startswith(UNDECODABLE)


def mark_of_damage(database: Path) -> Path:
    """The file whose presence asks the next opening to examine the whole database."""
    return database.with_name(database.name + ".damaged")


@contextmanager
def said_in_one_line(database: Path) -> Iterator[None]:
    """Turns SQLite's errors about file and disk into `StateUnavailable`, and contention into `Busy`."""
    try:
        yield
    except sqlite3.Error as error:
        told = as_baton_error(error, database)
        if told is None:
            raise
        raise told from error


def as_baton_error(error: sqlite3.Error, database: Path) -> BatonError | None:
    """The error as a person should read it; None for a programming error of ours."""
    code = _primary_code(error)
    folder = database.parent
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Busy(f"another process is writing to {database} for too long; try again")
    if code == sqlite3.SQLITE_FULL:
        return StateUnavailable(f"the disk of the state folder {folder} is full; free some space, try again")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StateUnavailable(f"the state folder {folder} cannot be written ({error}); make it writable")
    if code == sqlite3.SQLITE_IOERR:
        return StateUnavailable(f"the disk of the state folder {folder} reports an error ({error})")
    if is_damage(error):
        _leave_mark(database)
        why = ascii(str(error)[:MAX_REASON])[1:-1]
        return StateUnavailable(f"the database {database} is damaged ({why}); the next start examines it")
    if str(error) == MALFORMED:
        return not_as_written(f"a record in {database}", MALFORMED)
    return None


def not_as_written(record: str, why: str) -> StateUnavailable:
    """The error for a record that this version does not understand."""
    return StateUnavailable(
        f"{record} cannot be read by this version of Baton ({why}); use the version that wrote it"
    )


def _primary_code(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF


def _leave_mark(database: Path) -> None:
    try:
        mark_of_damage(database).touch(mode=0o600)
    except OSError:
        return  # a disk that refuses even this is told of by the error itself
