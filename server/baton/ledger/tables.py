"""Between records and rows: which record lives in which table, and how its values are stored."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar, cast

from pydantic import BaseModel, JsonValue, ValidationError

from baton.contract.errors import StateUnavailable
from baton.ledger.consult_records import ConsultArtifact, ConsultationRecord, ConsultTurnRecord
from baton.ledger.pool_records import PoolAttemptRecord, PoolJobRecord, PoolProcessRecord, PoolRecord
from baton.ledger.records import (
    ArtifactRef,
    AttemptRecord,
    CommandRecord,
    EventRecord,
    IntegrationRecord,
    PauseRecord,
    ProcessRecord,
    Record,
    RunRecord,
    TaskRecord,
    TicketRecord,
)
from baton.ledger.review_records import (
    DispositionRecord,
    ReviewFindingRecord,
    ReviewReadRecord,
    ReviewRecord,
)
from baton.ledger.text import from_json, storable_text, to_json
from baton.ledger.workflow_records import WorkflowRecord, WorkflowStepRecord

R = TypeVar("R", bound=Record)

Stored = str | int | float | bytes | None


@dataclass(frozen=True)
class Table(Generic[R]):
    """One table and its record. Columns are the record's fields, in any order."""

    name: str
    record: type[R]
    key: tuple[str, ...]
    json: frozenset[str] = frozenset()
    """Columns that hold JSON text."""
    paths: frozenset[str] = frozenset()
    """Columns that hold paths as bytes."""

    def insert(self, db: sqlite3.Connection, record: R, *, skip: tuple[str, ...] = ()) -> int:
        """Insert one row; the row id where the table has one. `skip` leaves columns to the database."""
        columns = [column for column in self.record.model_fields if column not in skip]
        marks = ", ".join("?" * len(columns))
        cursor = db.execute(
            f"INSERT INTO {self.name} ({_names(columns)}) VALUES ({marks})",
            [self.stored(column, getattr(record, column)) for column in columns],
        )
        return cursor.lastrowid or 0

    def select(self, where: str = "1", order: str = "", index: str | None = None) -> str:
        """The query for whole records, by the index of that name where SQLite would choose another way."""
        ordered = f" ORDER BY {order}" if order else ""
        indexed = f" INDEXED BY {index}" if index else ""
        return f"SELECT {_names(self.record.model_fields)} FROM {self.name}{indexed} WHERE {where}{ordered}"

    def select_one(self) -> str:
        return self.select(" AND ".join(f"{column} = ?" for column in self.key))

    def update(self, db: sqlite3.Connection, old: R, new: R) -> None:
        """Write the columns in which the two differ."""
        columns = [name for name in self.record.model_fields if getattr(old, name) != getattr(new, name)]
        if not columns:
            return
        assignments = ", ".join(f'"{column}" = ?' for column in columns)
        where = " AND ".join(f"{column} = ?" for column in self.key)
        values = [self.stored(column, getattr(new, column)) for column in columns]
        keys = [self.stored(column, getattr(old, column)) for column in self.key]
        db.execute(f"UPDATE {self.name} SET {assignments} WHERE {where}", [*values, *keys])

    def revised(self, old: R, fields: Mapping[str, object]) -> R:
        """The record with some fields changed, validated. Fields that do not exist or name it are refused."""
        foreign = [name for name in fields if name not in self.record.model_fields or name in self.key]
        if foreign:
            raise TypeError(f"{self.record.__name__} has no changeable field {', '.join(foreign)}")
        current = {name: getattr(old, name) for name in self.record.model_fields}
        return self.record.model_validate({**current, **fields})

    def stored(self, column: str, value: object) -> Stored:
        """A value as its column holds it."""
        if value is None:
            return None
        if column in self.json:
            return to_json(_plain(value))
        if column in self.paths:
            return os.fsencode(cast(str, value))
        if type(value) is str:
            return storable_text(value)
        if isinstance(value, StrEnum):
            return value.value
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, int | float):
            return value
        if isinstance(value, str):
            return storable_text(str(value))
        raise TypeError(f"{self.name}.{column} cannot hold {type(value).__name__}")

    def read(self, row: sqlite3.Row) -> R:
        """The record of a row.

        Raises `StateUnavailable` when it does not fit the record: another version of Baton wrote it.
        """
        try:
            return self.record.model_validate({name: self._loaded(name, row[name]) for name in row.keys()})  # noqa: SIM118
        except (ValidationError, ValueError) as error:
            which = ", ".join(str(row[column]) for column in self.key)
            first = str(error).splitlines()
            raise StateUnavailable(
                f"{self.record.__name__} {which} in the ledger cannot be read by this version of Baton"
                f" ({' '.join(first[1:3]) or first[0]}); use the version that wrote it"
            ) from None

    def _loaded(self, column: str, value: Stored) -> object:
        if value is None:
            return None
        if column in self.json:
            return from_json(cast(str, value))
        if column in self.paths:
            return os.fsdecode(cast(bytes, value))
        return value


def _plain(value: object) -> JsonValue:
    """Models as plain data under their wire names; `to_json` sees to texts and numbers."""
    if isinstance(value, BaseModel):
        # Not mode="json", which refuses lone surrogates before they can be escaped.
        return _plain(value.model_dump(mode="python", by_alias=True))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return cast(JsonValue, value)


def _names(columns: object) -> str:
    return ", ".join(f'"{column}"' for column in cast(list[str], columns))


RUNS = Table(
    "runs", RunRecord, ("run_id",), frozenset({"session", "policy", "options"}), frozenset({"workspace"})
)
TASKS = Table(
    "tasks",
    TaskRecord,
    ("run_id", "task_id"),
    frozenset({"contract", "depends_on", "reasons", "result", "outcome"}),
)
ATTEMPTS = Table(
    "attempts",
    AttemptRecord,
    ("run_id", "task_id", "attempt"),
    frozenset({"route", "result", "data"}),
    frozenset({"worktree"}),
)
INTEGRATIONS = Table(
    "integrations",
    IntegrationRecord,
    ("run_id", "number"),
    frozenset({"task_ids", "checks", "conflicts", "data"}),
    frozenset({"journal"}),
)
EVENTS = Table("events", EventRecord, ("run_id", "seq"), frozenset({"data"}))
COMMANDS = Table("commands", CommandRecord, ("command_id",), frozenset({"args", "result"}))
PROCESSES = Table("processes", ProcessRecord, ("process_id",))
TICKETS = Table("tickets", TicketRecord, ("ticket",))
PAUSES = Table("pauses", PauseRecord, ("model",))
ARTIFACT_REFS = Table("artifact_refs", ArtifactRef, ("run_id", "name"))
POOLS = Table(
    "pools", PoolRecord, ("pool_id",), frozenset({"settings", "live"}), frozenset({"jobs_file", "run_dir"})
)
POOL_JOBS = Table("pool_jobs", PoolJobRecord, ("pool_id", "job_id"))
POOL_ATTEMPTS = Table(
    "pool_attempts",
    PoolAttemptRecord,
    ("pool_id", "job_id", "attempt"),
    frozenset({"route", "usage", "checks", "notices"}),
    frozenset({"writes_in"}),
)
POOL_PROCESSES = Table("pool_processes", PoolProcessRecord, ("process_id",))
CONSULTATIONS = Table(
    "consultations", ConsultationRecord, ("consultation_id",), frozenset({"host"}), frozenset({"workspace"})
)
CONSULT_TURNS = Table(
    "consult_turns",
    ConsultTurnRecord,
    ("turn",),
    frozenset({"request", "material", "answer", "usage", "notices"}),
)
CONSULT_ARTIFACTS = Table("consult_artifacts", ConsultArtifact, ("consultation_id", "number", "name"))
REVIEWS = Table("reviews", ReviewRecord, ("review_id",), frozenset({"plan"}), frozenset({"workspace"}))
REVIEW_FINDINGS = Table("review_findings", ReviewFindingRecord, ("review_id", "number"))
REVIEW_DISPOSITIONS = Table("review_dispositions", DispositionRecord, ("entry",))
REVIEW_READS = Table("review_reads", ReviewReadRecord, ("review_id", "turn"), frozenset({"rechecks"}))
WORKFLOWS = Table(
    "workflows",
    WorkflowRecord,
    ("workflow_id",),
    frozenset({"terms", "session"}),
    frozenset({"workspace"}),
)
WORKFLOW_STEPS = Table(
    "workflow_steps",
    WorkflowStepRecord,
    ("workflow_id", "number"),
    frozenset({"binding", "request", "report"}),
)
