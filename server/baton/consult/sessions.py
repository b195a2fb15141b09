"""The conversations that command lines keep in our state folder: where they lie, and how they are removed.

Claude Code keeps its conversations in its own home; those are not ours to remove. Codex has the workers'
home in the state folder, where `sweep` leaves the conversations alone: most are those of runs and pools.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from baton.consult.adapters.program import own_folder
from baton.consult.adapters.protocol import Runtime
from baton.engine.house import House

OURS = (Runtime.OPENCODE, Runtime.COPILOT, Runtime.CODEX)
"""Runtimes whose conversations lie in the state folder."""

_NAME = re.compile(r"[0-9A-Za-z_-]+")

_DATABASE = ("", "-wal", "-shm")


def database_of(house: House, session: str) -> Path:
    """Where a conversation of OpenCode is kept: in a database of its own, so that it can be removed."""
    return own_folder(house, Runtime.OPENCODE, "sessions") / f"{session}.db"


def keep_database(house: House, session: str, database: Path) -> None:
    """Keep the database of a conversation that has got its name; nothing is done when it is kept already."""
    kept = database_of(house, session)
    if database == kept or not database.exists():
        return
    for suffix in reversed(_DATABASE):
        part = database.with_name(database.name + suffix)
        if part.exists():
            part.replace(kept.with_name(kept.name + suffix))


def forget(house: House, runtime: Runtime, session: str) -> bool:
    """Remove a conversation of ours; False when its program keeps it elsewhere, or it is not there."""
    if runtime not in OURS or not _NAME.fullmatch(session):
        return False
    parts = [path for path in _parts(house, runtime, session) if path.exists()]
    for path in parts:
        _remove(path)
    return bool(parts)


def sweep(house: House, seconds: float) -> int:
    """Remove conversations of ours that were not used for so long; how many."""
    oldest = time.time() - seconds
    removed = 0
    for runtime in (Runtime.OPENCODE, Runtime.COPILOT):
        for session in list(_sessions(house, runtime)):
            parts = [path for path in _parts(house, runtime, session) if path.exists()]
            if parts and max(map(_used, parts)) < oldest:
                removed += forget(house, runtime, session)
    return removed


def _sessions(house: House, runtime: Runtime) -> Iterator[str]:
    if runtime is Runtime.OPENCODE:
        yield from (path.stem for path in own_folder(house, runtime, "sessions").glob("*.db"))
    else:
        folder = own_folder(house, runtime, "home") / "session-state"
        yield from (path.name for path in folder.glob("*") if path.is_dir())


def _parts(house: House, runtime: Runtime, session: str) -> list[Path]:
    if runtime is Runtime.CODEX:
        return list(house.state.codex_home.glob(f"sessions/*/*/*/rollout-*-{session}.jsonl"))
    if runtime is Runtime.OPENCODE:
        database = database_of(house, session)
        return [database.with_name(database.name + suffix) for suffix in _DATABASE]
    home = own_folder(house, runtime, "home")
    return [home / "session-state" / session, home / "usage" / f"{session}.json"]


def _used(path: Path) -> float:
    """When something in it was last written."""
    below = tuple(path.rglob("*")) if path.is_dir() else ()
    times: list[float] = [entry.lstat().st_mtime for entry in (path, *below)]
    return max(times)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
