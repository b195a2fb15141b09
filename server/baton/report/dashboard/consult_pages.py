"""The pages on consultations: what other agents were asked, and what they said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baton.engine.house import House
from baton.ledger.consult_records import ConsultTurnRecord
from baton.report.dashboard.pager import pager
from baton.report.dashboard.query import Query
from baton.report.excerpt import shortened

CONSULTATIONS = 40

MAX_TEXT = 60_000
"""Characters shown of a question or an answer."""

Shown = tuple[str, dict[str, Any]]


def consultations(house: House, query: Query) -> Shown:
    """All of them, the newest first."""
    total = int(house.ledger.db.read("SELECT count(*) FROM consultations")[0][0])
    shown = pager(query, total, CONSULTATIONS)
    records = house.ledger.consultations(CONSULTATIONS, shown.offset)
    turns = {one.consultation_id: house.ledger.consult_turns(one.consultation_id) for one in records}
    return "dashboard/consultations.html", {
        "consultations": records,
        "agents": {name: list(dict.fromkeys(turn.agent for turn in asked)) for name, asked in turns.items()},
        "costs": {name: _cost(asked) for name, asked in turns.items()},
        "pager": shown,
        "live": "consultations",
    }


def consultation(house: House, query: Query) -> Shown:
    """One of them, with every question and answer. Raises `NotFound`."""
    record = house.ledger.consultation(query.path["consultation_id"])
    turns = house.ledger.consult_turns(record.consultation_id)
    rounds: dict[int, list[ConsultTurnRecord]] = {}
    for turn in turns:
        rounds.setdefault(turn.round, []).append(turn)
    return "dashboard/consultation.html", {
        "record": record,
        "rounds": rounds,
        "questions": {
            number: shortened(asked[0].question, MAX_TEXT)
            for number, asked in rounds.items()
            if asked[0].question is not None
        },
        "answers": {turn.turn: shortened(turn.answer.text, MAX_TEXT) for turn in turns if turn.answer},
        "cost": _cost(turns),
        "live": f"consultation/{record.consultation_id}",
    }


def _cost(turns: Sequence[ConsultTurnRecord]) -> float | None:
    """What all turns cost together, as the programs report it; None when a part is unknown."""
    costs = [turn.cost for turn in turns if turn.started_at is not None]
    return None if None in costs else sum(cost for cost in costs if cost is not None)
