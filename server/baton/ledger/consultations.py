"""Consultations: questions put to other agents, written down before they are asked."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from baton.contract.consult import Answer, ConsultationState, TurnState
from baton.contract.errors import NotFound, Unsupported, WrongState
from baton.ledger.artifacts import Artifacts
from baton.ledger.base import Part, now
from baton.ledger.consult_records import ConsultArtifact, ConsultationRecord, ConsultTurnRecord
from baton.ledger.tables import CONSULT_ARTIFACTS, CONSULT_TURNS, CONSULTATIONS

_LISTED = "`records` with action list, and `baton history`, list them"

_INDEXED = 1_000_000
"""Characters of a text that searching sees."""

MAX_INTEGER = 2**63 - 1
"""Of SQLite."""

DAY = 24 * 3600.0


@dataclass(frozen=True)
class Hit:
    """A turn that holds every word of a search."""

    consultation_id: str
    number: int
    agent: str
    model: str | None
    at: float
    excerpt: str
    """Some words around the first place, what was found in «marks»."""


@dataclass(frozen=True)
class Spent:
    """What turns that were asked have cost, as far as their agents told."""

    turns: int
    cost: float
    """US dollars of those that told; a floor when there are `unpriced` ones."""
    unpriced: tuple[str, ...]
    """Agents of turns that told no cost."""


@dataclass(frozen=True)
class Strength:
    """How one agent with one model did at one kind of question."""

    capability: str
    agent: str
    model: str | None
    asked: int
    answered: int
    failed: int
    seconds: float | None
    """An answer took so long on average."""
    cost: float
    unpriced: int
    commonest_failure: str | None


class Consultations(Part):
    """Consultations, their turns and what is found in them. Each change is one durable transaction."""

    def begin_consultation(
        self, consultation: ConsultationRecord, turns: Sequence[ConsultTurnRecord]
    ) -> list[ConsultTurnRecord]:
        """Record a consultation with the turns of its first round; the turns as recorded."""
        made = consultation.model_copy(update={"created_at": now(), "updated_at": now()})
        with self.db.transaction() as db:
            CONSULTATIONS.insert(db, made)
            return self._add_turns(db, made.consultation_id, turns)

    def continue_consultation(
        self, consultation_id: str, turns: Sequence[ConsultTurnRecord]
    ) -> list[ConsultTurnRecord]:
        """Record another round. Raises `NotFound`, and `WrongState` while one is at work."""
        with self.db.transaction() as db:
            old = self.consultation(consultation_id)
            if not old.state.at_rest:
                raise WrongState(f"consultation {consultation_id} is at work; wait for it, or cancel it")
            self._change(db, old, state=ConsultationState.WORKING, ended_at=None, cancel_asked=None, starts=0)
            return self._add_turns(db, consultation_id, turns)

    def consultation(self, consultation_id: str) -> ConsultationRecord:
        """Raises `NotFound`."""
        rows = self.db.read(CONSULTATIONS.select_one(), [consultation_id])
        if not rows:
            raise NotFound(f"no consultation {consultation_id[:40]!r}; {_LISTED}")
        return CONSULTATIONS.read(rows[0])

    def consultation_named(self, beginning: str) -> ConsultationRecord:
        """The one whose id begins so. Raises `NotFound`, also when it is not one alone."""
        rows = self._many(
            CONSULTATIONS, "substr(consultation_id, 1, ?) = ?", [len(beginning), beginning, 2], "1 LIMIT ?"
        )
        if len(rows) != 1:
            what = "no consultation" if not rows else "more than one consultation"
            raise NotFound(f"{what} {beginning[:40]!r}; {_LISTED}")
        return rows[0]

    def consultations(
        self,
        limit: int = 20,
        offset: int = 0,
        *,
        kind: str | None = None,
        parent: str | None = None,
        open_only: bool = False,
    ) -> list[ConsultationRecord]:
        """The newest first, at most `limit`; -1 for all."""
        where, values = ["1"], list[object]()
        for column, wanted in (("kind", kind), ("parent", parent)):
            if wanted is not None:
                where.append(f"{column} = ?")
                values.append(wanted)
        if open_only:
            where.append("ended_at IS NULL")
        order = "created_at DESC, consultation_id LIMIT ? OFFSET ?"
        return self._many(
            CONSULTATIONS, " AND ".join(where), [*values, limit, min(offset, MAX_INTEGER)], order
        )

    def consult_turns(self, consultation_id: str, *, round: int | None = None) -> list[ConsultTurnRecord]:
        """The turns of a consultation, or of one round, in their order."""
        if round is None:
            return self._many(CONSULT_TURNS, "consultation_id = ?", [consultation_id], "number")
        where = "consultation_id = ? AND round = ?"
        return self._many(CONSULT_TURNS, where, [consultation_id, round], "number")

    def consult_turn(self, turn: int) -> ConsultTurnRecord:
        """By the number that the ledger gave it. Raises `NotFound`."""
        rows = self.db.read(CONSULT_TURNS.select_one(), [turn])
        if not rows:
            raise NotFound(f"no turn {turn}; {_LISTED}")
        return CONSULT_TURNS.read(rows[0])

    def start_consult_turn(self, turn: int, limit: int) -> bool:
        """Give the turn a place, if fewer than `limit` are taken and no older one waits for it.

        From then on it counts as asked, whatever becomes of the process that asks.
        """
        places = (
            "SELECT count(*) FROM consult_turns WHERE ended_at IS NULL"
            " AND (state = 'asking' OR (state = 'queued' AND turn < ?))"
        )
        # Most looks find no place: they cost no write.
        if int(self.db.read(places, [turn])[0][0]) >= limit:
            return False
        with self.db.transaction() as db:
            cursor = db.execute(
                "UPDATE consult_turns SET state = 'asking', started_at = ?"
                f" WHERE turn = ? AND state = 'queued' AND ({places}) < ?",
                [now(), turn, turn, limit],
            )
            return cursor.rowcount == 1

    def end_consult_turn(
        self, turn: int, artifacts: Sequence[ConsultArtifact] = (), **fields: object
    ) -> ConsultTurnRecord:
        """Record how a turn ended; the first end stays. Artifacts are referred to in any case."""
        with self.db.transaction() as db:
            for artifact in artifacts:
                self._refer(db, artifact)
            old = self.consult_turn(turn)
            if old.state.at_rest:
                return old
            new = CONSULT_TURNS.revised(old, {"ended_at": now(), **fields})
            CONSULT_TURNS.update(db, old, new)
            if new.answer is not None:
                self._index(db, turn, "answer", words_of(new.answer))
            return new

    def refer_to_consult_artifacts(self, artifacts: Sequence[ConsultArtifact]) -> None:
        """Record what turns need; idempotent. Call it after the artifacts are kept."""
        with self.db.transaction() as db:
            for artifact in artifacts:
                self._refer(db, artifact)

    def consult_artifacts(self, consultation_id: str, number: int | None = None) -> list[ConsultArtifact]:
        """What is kept of a consultation beside its rows."""
        where, values = "consultation_id = ?", list[object]([consultation_id])
        if number is not None:
            where, values = where + " AND number = ?", [*values, number]
        return self._many(CONSULT_ARTIFACTS, where, values, "number, name")

    def settle_consultation(self, consultation_id: str) -> ConsultationRecord:
        """Bring its state in line with the turns of its last round. Raises `NotFound`."""
        with self.db.transaction() as db:
            old = self.consultation(consultation_id)
            turns = self.consult_turns(consultation_id)
            last = [turn.state for turn in turns if turn.round == turns[-1].round]
            state = overall(last)
            if state is old.state:
                return old
            return self._change(db, old, state=state, ended_at=now() if state.at_rest else None)

    def ask_to_cancel(self, consultation_id: str) -> ConsultationRecord:
        """Ask whoever works on it to stop; nothing when it is at rest. Raises `NotFound`."""
        with self.db.transaction() as db:
            old = self.consultation(consultation_id)
            if old.state.at_rest or old.cancel_asked is not None:
                return old
            return self._change(db, old, cancel_asked=now())

    def count_consult_start(self, consultation_id: str) -> int:
        """Note that a process is started for the round at work; how many there have been."""
        with self.db.transaction() as db:
            old = self.consultation(consultation_id)
            return self._change(db, old, starts=old.starts + 1).starts

    # -- looking back ------------------------------------------------------------------------------

    def search_consultations(self, query: str, limit: int = 10, since: float = 0.0) -> list[Hit]:
        """Turns whose question or answer holds every word, the best first.

        Words are only words: nothing in the query is an operator. Where a word is written with signs in it
        (`a.py`, `foo-bar`), its parts must follow each other. Raises `Unsupported` where SQLite has no
        full-text search.
        """
        words = [word for word in query.encode(errors="replace").decode().split() if re.search(r"\w", word)]
        if not words:
            return []
        quoted = " ".join('"' + word.replace('"', '""').replace("\0", " ") + '"' for word in words)
        try:
            rows = self.db.read(
                "SELECT t.consultation_id, t.number, t.agent, ifnull(t.model, t.asked_model), t.queued_at,"
                " snippet(consult_text, -1, '«', '»', '…', 16)"
                " FROM consult_text JOIN consult_turns t ON t.turn = consult_text.rowid"
                " WHERE consult_text MATCH ? AND t.queued_at >= ? ORDER BY rank LIMIT ?",
                [quoted, since, limit],
            )
        except sqlite3.OperationalError as error:
            if "no such" not in str(error):
                raise
            raise Unsupported(
                "this Python's SQLite has no full-text search (FTS5); use one that has it"
            ) from None
        return [Hit(*row) for row in rows]

    def consult_strengths(self, since: float = 0.0) -> list[Strength]:
        """By kind of question, agent and model; turns that were never asked do not count."""
        rows = self.db.read(
            "SELECT capability, agent, ifnull(model, asked_model) AS model, count(*) AS asked,"
            " sum(state = 'answered') AS answered, sum(state = 'failed') AS failed,"
            " avg(CASE WHEN state = 'answered' THEN ended_at - started_at END) AS seconds,"
            " total(cost) AS cost, sum(cost IS NULL) AS unpriced,"
            " (SELECT failure FROM consult_turns f WHERE f.capability = t.capability AND f.agent = t.agent"
            "   AND f.failure IS NOT NULL AND f.started_at >= ?1"
            "   AND ifnull(f.model, f.asked_model) IS ifnull(t.model, t.asked_model)"
            "   GROUP BY failure ORDER BY count(*) DESC, failure LIMIT 1) AS commonest"
            " FROM consult_turns t WHERE started_at >= ?1 AND ended_at IS NOT NULL"
            " GROUP BY capability, agent, ifnull(model, asked_model) ORDER BY capability, agent, model",
            [since],
        )
        return [Strength(*row) for row in rows]

    def consult_spent(self, *, consultation_id: str | None = None, since: float = 0.0) -> Spent:
        """What was asked, or waits to be: of one consultation, or since a moment."""
        where, values = (
            "queued_at >= ? AND (ended_at IS NULL OR started_at IS NOT NULL)",
            list[object]([since]),
        )
        if consultation_id is not None:
            where, values = where + " AND consultation_id = ?", [*values, consultation_id]
        row = self.db.read(f"SELECT count(*), total(cost) FROM consult_turns WHERE {where}", values)[0]
        agents = self.db.read(
            f"SELECT DISTINCT agent FROM consult_turns WHERE {where} AND cost IS NULL ORDER BY agent", values
        )
        return Spent(int(row[0]), float(row[1]), tuple(found[0] for found in agents))

    def answered_consult_turns(self, agent: str, model: str | None, limit: int) -> list[ConsultTurnRecord]:
        """The latest answers of an agent that was asked with this model, newest first."""
        where = "agent = ? AND asked_model IS ? AND state = 'answered'"
        return self._many(CONSULT_TURNS, where, [agent, model, limit], "turn DESC LIMIT ?")

    def delete_consultation(self, consultation_id: str, artifacts: Artifacts) -> int:
        """Forget a consultation and remove what only it needed; the bytes freed.

        Raises `NotFound`, and `WrongState` while it is at work.
        """
        with self.db.transaction() as db:
            old = self.consultation(consultation_id)
            if not old.state.at_rest:
                raise WrongState(f"consultation {consultation_id} is at work; cancel it first")
            names = {kept.artifact for kept in self.consult_artifacts(consultation_id)}
            for turn in self.consult_turns(consultation_id):
                self._forget_words(db, turn.turn)
            db.execute("DELETE FROM consultations WHERE consultation_id = ?", [consultation_id])
            unneeded = [name for name in names if not self._is_needed(name)]
        return sum(artifacts.delete(name) for name in unneeded)

    # -- writing -----------------------------------------------------------------------------------

    def _add_turns(
        self, db: sqlite3.Connection, consultation_id: str, turns: Sequence[ConsultTurnRecord]
    ) -> list[ConsultTurnRecord]:
        last = self.consult_turns(consultation_id)
        number, round_ = (last[-1].number, last[-1].round + 1) if last else (0, 1)
        added = []
        for place, turn in enumerate(turns, start=number + 1):
            changes = {"number": place, "round": round_, "queued_at": now()}
            made = turn.model_copy(update={**changes, "consultation_id": consultation_id})
            key = CONSULT_TURNS.insert(db, made, skip=("turn",))
            if made.question is not None:
                self._index(db, key, "question", made.question)
            added.append(made.model_copy(update={"turn": key}))
        return added

    def _change(
        self, db: sqlite3.Connection, old: ConsultationRecord, **fields: object
    ) -> ConsultationRecord:
        new = CONSULTATIONS.revised(old, {**fields, "updated_at": now()})
        CONSULTATIONS.update(db, old, new)
        return new

    def _refer(self, db: sqlite3.Connection, artifact: ConsultArtifact) -> None:
        db.execute(
            "INSERT OR REPLACE INTO consult_artifacts (consultation_id, number, name, artifact, size)"
            " VALUES (?, ?, ?, ?, ?)",
            [artifact.consultation_id, artifact.number, artifact.name, artifact.artifact, artifact.size],
        )

    def _is_needed(self, artifact: str) -> bool:
        return bool(
            self.db.read(
                "SELECT 1 FROM artifact_refs WHERE artifact = ?1"
                " UNION ALL SELECT 1 FROM pool_artifacts WHERE artifact = ?1"
                " UNION ALL SELECT 1 FROM consult_artifacts WHERE artifact = ?1 LIMIT 1",
                [artifact],
            )
        )

    def _index(self, db: sqlite3.Connection, turn: int, column: str, text: str) -> None:
        if not self._has_index():
            return
        words = text[:_INDEXED]
        if column == "question":
            db.execute("INSERT INTO consult_text (rowid, question, answer) VALUES (?, ?, '')", [turn, words])
        else:
            db.execute("UPDATE consult_text SET answer = ? WHERE rowid = ?", [words, turn])

    def _forget_words(self, db: sqlite3.Connection, turn: int) -> None:
        if self._has_index():
            db.execute("DELETE FROM consult_text WHERE rowid = ?", [turn])

    def _has_index(self) -> bool:
        return bool(self.db.read("SELECT 1 FROM sqlite_master WHERE name = 'consult_text'"))


def overall(turns: Sequence[TurnState]) -> ConsultationState:
    """The state of a consultation from those of the turns of its last round: at least one."""
    if any(not state.at_rest for state in turns):
        return ConsultationState.WORKING
    if all(state is TurnState.ANSWERED for state in turns):
        return ConsultationState.ANSWERED
    if any(state is TurnState.ANSWERED for state in turns):
        return ConsultationState.PARTLY
    for state, whole in (
        (TurnState.INTERRUPTED, ConsultationState.INTERRUPTED),
        (TurnState.CANCELLED, ConsultationState.CANCELLED),
    ):
        if state in turns:
            return whole
    return ConsultationState.FAILED


def words_of(answer: Answer) -> str:
    """All of an answer that is worth finding, as plain text."""
    sources = [f"{source.title} {source.location or ''}" for source in answer.sources]
    lists = (answer.assumptions, answer.uncertainties, answer.follow_ups, sources)
    return "\n".join([answer.text, *(line for lines in lists for line in lines)])
