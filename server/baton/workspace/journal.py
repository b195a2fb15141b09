"""The record of one apply: what is to be done, written and synced before it is done, and how far it got.

A journal is a folder on the workspace's file system. `journal` holds one record a line, each with a checksum,
so that a torn end is told from a whole record. `slots/N` belongs to operation N: before the operation it
holds what goes into the workspace, afterwards what came out. So the files themselves say which operations
were done.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from baton.contract.errors import StateUnavailable
from baton.workspace.pathwalk import Entry

Step = Callable[[str], None]
"""Called before every change of a file or of the journal, with its name; tests stop there."""


class Act(StrEnum):
    """What an operation does to its path."""

    REPLACE = "replace"
    """Exchange the slot with the path."""
    REMOVE = "remove"
    """Move a file or link from the path to the slot."""
    REMOVE_FOLDER = "remove_folder"
    """Move an empty directory from the path to the slot."""
    ADD = "add"
    """Move a file or link from the slot to the path, which must be free."""
    ADD_FOLDER = "add_folder"
    """Move an empty directory from the slot to the path, which must be free."""


@dataclass(frozen=True)
class Operation:
    """One reversible step. `old` is what must lie at the path before, `new` what lies there afterwards."""

    number: int
    act: Act
    path: bytes
    old: Entry | None
    new: Entry | None

    @property
    def slot(self) -> bytes:
        return b"%d" % self.number


class Mark(StrEnum):
    """How far an apply got. Each mark is synced before anything that follows it."""

    PLANNED = "planned"
    """Nothing in the workspace has been touched; slots may be incomplete."""
    STAGED = "staged"
    """Every slot is complete; operations may have been done."""
    COMMITTED = "committed"
    """Every operation is done and synced: from here an apply is finished, never undone."""
    CLOSED = "closed"
    """Finished: what is left are backups."""
    UNDONE = "undone"
    """Taken back: what is left are copies of what could not be told apart."""


@dataclass(frozen=True)
class Plan:
    """The first record of a journal."""

    root: Path
    object_format: str
    file_mode: bool
    operations: tuple[Operation, ...]


class Journal:
    """A journal folder, for the one process that holds the repository lock."""

    def __init__(self, folder: Path, step: Step) -> None:
        self.folder = folder
        self.slots = folder / "slots"
        self._file = folder / "journal"
        self._step = step

    @classmethod
    def create(cls, folder: Path, plan: Plan, step: Step) -> Journal:
        """Write and sync the plan. The folder must not exist yet; its parents are made as needed."""
        journal = cls(folder, step)
        step("make journal folder")
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(mode=0o700)
        journal.slots.mkdir(mode=0o700)
        journal._append({"mark": Mark.PLANNED, "plan": _plan_out(plan)})
        for path in (folder, folder.parent):
            sync_folder(path)
        return journal

    def mark(self, mark: Mark) -> None:
        """Append a mark and sync it."""
        self._append({"mark": mark})

    def read(self) -> tuple[Plan | None, Mark | None]:
        """The plan and the last mark; None for both when the apply never got to touch anything.

        Raises `StateUnavailable` when the journal is damaged before its end, or of a newer kind.
        """
        plan, last = None, None
        try:
            lines = self._file.read_bytes().split(b"\n")
        except FileNotFoundError:
            return None, None
        records = [_record_in(line) for line in lines if line]
        whole = next((index for index, record in enumerate(records) if record is None), len(records))
        if any(record is not None for record in records[whole:]):
            raise StateUnavailable(
                f"the journal {self._file} is damaged; compare {self.slots} with the workspace, remove it"
            )
        for record in records[:whole]:
            assert record is not None
            last = Mark(record["mark"])
            if last is Mark.PLANNED:
                plan = _plan_in(record["plan"])
        return plan, last

    def discard(self) -> None:
        """Remove the journal with its backups; the record goes last, so that it can be done again."""
        self._step("remove slots")
        shutil.rmtree(self.slots, ignore_errors=True)
        self._step("remove journal")
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.folder.parent.rmdir()

    def _append(self, record: dict[str, Any]) -> None:
        body = json.dumps(record, separators=(",", ":")).encode()
        self._step(f"write {record['mark']}")
        handle = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "r+b", buffering=0) as stream:
            # A torn end counts as never written; nothing may follow it.
            whole = stream.read().rfind(b"\n") + 1
            stream.truncate(whole)
            stream.seek(whole)
            stream.write(b"%08x " % zlib.crc32(body) + body + b"\n")
            os.fsync(stream.fileno())
        self._step(f"wrote {record['mark']}")


def sync_folder(path: Path) -> None:
    """Make names in a directory durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _record_in(line: bytes) -> dict[str, Any] | None:
    checksum, _, body = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(body):
        return None
    record = json.loads(body)
    return record if isinstance(record, dict) else None


def _plan_out(plan: Plan) -> dict[str, Any]:
    return {
        "version": 1,
        "root": os.fsencode(plan.root).hex(),
        "objectFormat": plan.object_format,
        "fileMode": plan.file_mode,
        "operations": [_operation_out(operation) for operation in plan.operations],
    }


def _plan_in(data: dict[str, Any]) -> Plan:
    if data["version"] != 1:
        raise StateUnavailable("the journal was written by a newer Baton; start that one once to finish it")
    return Plan(
        root=Path(os.fsdecode(bytes.fromhex(data["root"]))),
        object_format=data["objectFormat"],
        file_mode=data["fileMode"],
        operations=tuple(_operation_in(number, each) for number, each in enumerate(data["operations"])),
    )


def _operation_out(operation: Operation) -> list[Any]:
    sides = [None if side is None else [side.mode, side.oid] for side in (operation.old, operation.new)]
    return [operation.act, operation.path.hex(), *sides]


def _operation_in(number: int, data: Sequence[Any]) -> Operation:
    act, path, old, new = data
    sides = [None if side is None else Entry(*side) for side in (old, new)]
    return Operation(number, Act(act), bytes.fromhex(path), *sides)
