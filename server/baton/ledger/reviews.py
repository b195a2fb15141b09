"""Reviews in the ledger: plans, findings, and the history of what became of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from baton.contract.errors import NotFound, WrongState
from baton.contract.review import Disposition, ReviewState
from baton.ledger.base import Part, now
from baton.ledger.review_records import (
    DispositionRecord,
    ReviewFindingRecord,
    ReviewReadRecord,
    ReviewRecord,
)
from baton.ledger.tables import REVIEW_DISPOSITIONS, REVIEW_FINDINGS, REVIEW_READS, REVIEWS


@dataclass(frozen=True)
class Score:
    """How a reviewer's findings fared, over finalised reviews that recheck no other."""

    agent: str
    model: str | None
    asked: int
    answered: int
    unparsed: int
    findings: int
    kept: int
    """Marked fixed, or a risk that is accepted."""
    rejected: int
    open: int
    sole_serious: int | None
    """Serious ones that no other had and that were not rejected; None: it never answered beside another."""

    @property
    def hit_rate(self) -> float | None:
        """Kept of all decided; None below ten decided."""
        decided = self.kept + self.rejected
        return self.kept / decided if decided >= DECIDED else None


DECIDED = 10
"""So many decided findings make a rate."""


class Reviews(Part):
    """Reviews of one ledger."""

    def begin_review(
        self,
        review: ReviewRecord,
        own: Sequence[ReviewFindingRecord],
        carried: Sequence[ReviewFindingRecord] = (),
    ) -> ReviewRecord:
        """Record a plan with the findings that stand before anybody is asked."""
        made = review.model_copy(update={"created_at": now(), "updated_at": now()})
        with self.db.transaction() as db:
            REVIEWS.insert(db, made)
            for number, finding in enumerate([*own, *carried], start=1):
                REVIEW_FINDINGS.insert(db, finding.model_copy(update={"number": number}))
        return made

    def review(self, review_id: str) -> ReviewRecord:
        """Raises `NotFound`."""
        rows = self.db.read(REVIEWS.select_one(), [review_id])
        if not rows:
            raise NotFound(f"no review {review_id[:40]!r}; `baton review list` lists them")
        return REVIEWS.read(rows[0])

    def reviews(
        self,
        limit: int = 20,
        offset: int = 0,
        *,
        parent: str | None = None,
        state: ReviewState | None = None,
    ) -> list[ReviewRecord]:
        """The newest first, from number `offset` on; -1 for all."""
        where, values = ["1"], list[object]()
        for column, wanted in (("parent", parent), ("state", state.value if state else None)):
            if wanted is not None:
                where.append(f"{column} = ?")
                values.append(wanted)
        order = "created_at DESC, review_id LIMIT ? OFFSET ?"
        return self._many(REVIEWS, " AND ".join(where), [*values, limit, offset], order)

    def change_review(
        self, review_id: str, expect: Sequence[ReviewState] | None = None, **fields: object
    ) -> ReviewRecord:
        """Change it. Raises `NotFound`, and `WrongState` when it is in none of the expected states."""
        with self.db.transaction() as db:
            old = self.review(review_id)
            if expect is not None and old.state not in expect:
                allowed = ", ".join(state.value for state in expect)
                raise WrongState(
                    f"review {review_id} is {old.state.value}; this is possible only when it is {allowed}"
                )
            new = REVIEWS.revised(old, {**fields, "updated_at": now()})
            REVIEWS.update(db, old, new)
            return new

    def review_findings(self, review_id: str) -> list[ReviewFindingRecord]:
        return self._many(REVIEW_FINDINGS, "review_id = ?", [review_id], "number")

    def review_reads(self, review_id: str) -> list[ReviewReadRecord]:
        """What was made of the answers that are in."""
        return self._many(REVIEW_READS, "review_id = ?", [review_id], "turn")

    def record_read(self, read: ReviewReadRecord, findings: Sequence[ReviewFindingRecord]) -> bool:
        """Record what an answer held, once: False when that was done before."""
        with self.db.transaction() as db:
            known = self.db.read(REVIEW_READS.select_one(), [read.review_id, read.turn])
            if known:
                return False
            REVIEW_READS.insert(db, read)
            self._add(db, read.review_id, findings)
            return True

    def add_findings(self, review_id: str, findings: Sequence[ReviewFindingRecord]) -> None:
        with self.db.transaction() as db:
            self._add(db, review_id, findings)

    def decide(
        self,
        review_id: str,
        decisions: Sequence[DispositionRecord],
        *,
        conclusion: str | None = None,
        finalise: bool = False,
    ) -> ReviewRecord:
        """Give findings their dispositions, each with an entry in the history; all or none."""
        with self.db.transaction() as db:
            for decision in decisions:
                rows = self.db.read(REVIEW_FINDINGS.select_one(), [review_id, decision.number])
                if not rows:
                    raise NotFound(f"review {review_id} has no finding F{decision.number}")
                old = REVIEW_FINDINGS.read(rows[0])
                same = (old.answered, old.disposition, old.reason) == (
                    True,
                    decision.disposition,
                    decision.reason,
                )
                if same:
                    continue
                changes = {
                    "disposition": decision.disposition,
                    "reason": decision.reason,
                    "answered": True,
                }
                REVIEW_FINDINGS.update(db, old, REVIEW_FINDINGS.revised(old, changes))
                REVIEW_DISPOSITIONS.insert(db, decision.model_copy(update={"at": now()}), skip=("entry",))
            old_review = self.review(review_id)
            fields: dict[str, object] = {"updated_at": now()}
            if finalise:
                fields |= {"state": ReviewState.FINALISED, "ended_at": now()}
            if conclusion is not None:
                fields["conclusion"] = conclusion
            new = REVIEWS.revised(old_review, fields)
            REVIEWS.update(db, old_review, new)
            return new

    def dispositions(self, review_id: str) -> list[DispositionRecord]:
        """The history, oldest first."""
        return self._many(REVIEW_DISPOSITIONS, "review_id = ?", [review_id], "entry")

    def expire_plans(self, before: float) -> int:
        """Mark plans made before a moment and never run; how many."""
        with self.db.transaction() as db:
            cursor = db.execute(
                "UPDATE reviews SET state = 'expired', token = NULL, ended_at = ?, updated_at = ?"
                " WHERE state = 'planned' AND created_at < ?",
                [now(), now(), before],
            )
            return cursor.rowcount

    def delete_reviews(self, before: float) -> int:
        """Forget reviews at rest whose last change is older; how many. Consultations go their own way.

        Steps of a workflow stay as long as it.
        """
        with self.db.transaction() as db:
            cursor = db.execute(
                "DELETE FROM reviews WHERE updated_at < ? AND state NOT IN ('planned', 'running')"
                " AND NOT EXISTS (SELECT 1 FROM workflow_steps WHERE review_id = reviews.review_id)",
                [before],
            )
            return cursor.rowcount

    def scorecard(self, since: float = 0.0) -> list[Score]:
        """By reviewer and model, over reviews that recheck no other.

        Whether an answer came counts for every review that was run; what became of findings only once the
        review is finalised.
        """
        rows = self.db.read(
            "WITH seats AS ("
            "  SELECT r.review_id, r.state = 'finalised' AS judged, t.agent,"
            "   ifnull(max(t.model), max(t.asked_model)) AS model, json_extract(t.request, '$.seat') AS seat,"
            "   max(t.state = 'answered') AS answered, max(ifnull(d.parsed, 0)) AS parsed,"
            "   max(d.parsed = 0) AS unparsed"
            "  FROM reviews r JOIN consult_turns t ON t.consultation_id = r.consultation_id"
            "  LEFT JOIN review_reads d ON d.review_id = r.review_id AND d.turn = t.number"
            "  WHERE r.parent IS NULL AND t.started_at >= ?1 AND t.ended_at IS NOT NULL"
            # By what was asked of whom: an answer that never came has no seat of its own in what was read.
            "  GROUP BY r.review_id, json_extract(t.request, '$.seat')),"
            " many AS (SELECT review_id FROM seats WHERE parsed GROUP BY review_id HAVING count(*) > 1)"
            " SELECT s.agent, s.model, count(*), total(s.parsed), total(s.unparsed AND NOT s.parsed),"
            "  total(f.findings), total(f.kept), total(f.rejected), total(f.open), total(f.sole),"
            "  total(s.parsed AND s.review_id IN many)"
            " FROM seats s LEFT JOIN ("
            "  SELECT g.review_id, g.source, count(*) AS findings,"
            "   sum(g.disposition IN ('fixed', 'accepted_risk')) AS kept,"
            "   sum(g.disposition = 'rejected') AS rejected, sum(g.disposition = 'open') AS open,"
            "   sum(g.severity IN ('critical', 'important') AND g.disposition != 'rejected'"
            "    AND g.review_id IN many AND NOT EXISTS ("
            "     SELECT 1 FROM review_findings o WHERE o.review_id = g.review_id AND o.source NOT IN"
            "      (g.source, 'host') AND o.path IS NOT NULL AND o.path = g.path"
            "      AND o.severity IN ('critical', 'important')"
            "      AND abs(ifnull(o.line, 0) - ifnull(g.line, 0)) <= 3)"
            "   ) AS sole"
            "  FROM review_findings g GROUP BY g.review_id, g.source"
            " ) f ON f.review_id = s.review_id AND f.source = s.seat AND s.judged"
            " GROUP BY s.agent, s.model ORDER BY s.agent, s.model",
            [since],
        )
        return [
            Score(
                agent=row[0],
                model=row[1],
                asked=int(row[2]),
                answered=int(row[3]),
                unparsed=int(row[4]),
                findings=int(row[5]),
                kept=int(row[6]),
                rejected=int(row[7]),
                open=int(row[8]),
                sole_serious=int(row[9]) if row[10] else None,
            )
            for row in rows
        ]

    def _add(self, db: sqlite3.Connection, review_id: str, findings: Sequence[ReviewFindingRecord]) -> None:
        last = self.db.read("SELECT max(number) FROM review_findings WHERE review_id = ?", [review_id])[0][0]
        for number, finding in enumerate(findings, start=(last or 0) + 1):
            REVIEW_FINDINGS.insert(db, finding.model_copy(update={"number": number}))


def serious_open(findings: Sequence[ReviewFindingRecord]) -> list[ReviewFindingRecord]:
    """Critical and important ones that are neither fixed, rejected nor accepted."""
    return [one for one in findings if one.severity.serious and one.disposition is Disposition.OPEN]
