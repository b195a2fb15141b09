"""Consultations in the ledger: the queue's order, first ends, what is found, counted and forgotten."""

from __future__ import annotations

import pytest

from baton.contract.consult import Answer, ConsultationState, SourceMode, TurnState
from baton.contract.errors import NotFound, WrongState
from baton.contract.reply import ReplyFailure
from baton.ledger.artifacts import Artifacts
from baton.ledger.consult_records import ConsultArtifact, ConsultationRecord, ConsultTurnRecord
from baton.ledger.consultations import overall
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger


def _turn(agent: str = "claude", question: str | None = "Why?", **fields: object) -> ConsultTurnRecord:
    known = {
        "consultation_id": "",
        "number": 0,
        "round": 0,
        "agent": agent,
        "runtime": "claude",
        "asked_model": "claude-opus-5",
        "capability": "reasoning",
        "source_mode": SourceMode.AUTO,
        "sees": "given",
        "why": "asked for by name",
        "question": question,
    }
    return ConsultTurnRecord.model_validate({**known, **fields})


def _begin(ledger: Ledger, name: str, *turns: ConsultTurnRecord) -> list[ConsultTurnRecord]:
    return ledger.begin_consultation(ConsultationRecord(consultation_id=name), turns or (_turn(),))


def test_turns_are_numbered_and_keep_their_place_in_the_queue(ledger: Ledger) -> None:
    first = _begin(ledger, "c1", _turn("a"), _turn("b"))
    second = _begin(ledger, "c2")
    assert [(turn.number, turn.round) for turn in first] == [(1, 1), (2, 1)]
    assert first[0].turn < first[1].turn < second[0].turn


def test_places_are_given_in_the_order_of_the_queue(ledger: Ledger) -> None:
    one, two = _begin(ledger, "c1", _turn("a"), _turn("b"))
    (three,) = _begin(ledger, "c2")
    assert not ledger.start_consult_turn(two.turn, 1)
    assert ledger.start_consult_turn(one.turn, 1)
    assert not ledger.start_consult_turn(one.turn, 9)  # it has its place
    assert not ledger.start_consult_turn(three.turn, 2)  # the second is before it
    assert ledger.start_consult_turn(two.turn, 2)
    assert not ledger.start_consult_turn(three.turn, 2)
    ledger.end_consult_turn(one.turn, state=TurnState.ANSWERED, answer=Answer(text="x"))
    assert ledger.start_consult_turn(three.turn, 2)


def test_first_end_of_a_turn_stays(ledger: Ledger) -> None:
    (turn,) = _begin(ledger, "c1")
    ledger.end_consult_turn(turn.turn, state=TurnState.ANSWERED, answer=Answer(text="yes"), cost=0.5)
    late = ledger.end_consult_turn(turn.turn, state=TurnState.INTERRUPTED, detail="late")
    assert (late.state, late.cost, late.detail) == (TurnState.ANSWERED, 0.5, None)


def test_round_is_refused_while_one_is_at_work_and_begins_where_the_last_ended(ledger: Ledger) -> None:
    (turn,) = _begin(ledger, "c1")
    with pytest.raises(WrongState):
        ledger.continue_consultation("c1", [_turn()])
    ledger.end_consult_turn(turn.turn, state=TurnState.FAILED, failure=ReplyFailure.AUTH)
    assert ledger.settle_consultation("c1").state is ConsultationState.FAILED
    (again,) = ledger.continue_consultation("c1", [_turn()])
    assert (again.number, again.round) == (2, 2)
    assert ledger.consultation("c1").state is ConsultationState.WORKING
    assert ledger.consultation("c1").ended_at is None


@pytest.mark.parametrize(
    ("turns", "whole"),
    [
        (["answered", "asking"], "working"),
        (["answered", "queued"], "working"),
        (["answered", "answered"], "answered"),
        (["answered", "interrupted"], "partly"),
        (["failed", "failed"], "failed"),
        (["failed", "cancelled"], "cancelled"),
        (["interrupted", "cancelled"], "interrupted"),
    ],
)
def test_state_of_a_consultation_follows_from_its_turns(turns: list[str], whole: str) -> None:
    assert overall([TurnState(state) for state in turns]).value == whole


def test_search_takes_words_as_words(ledger: Ledger) -> None:
    (turn,) = _begin(ledger, "c1", _turn(question="Should the cache be sharded?"))
    answer = Answer(text="It searches slowly.", uncertainties=["the AND gate NEAR the door"])
    ledger.end_consult_turn(turn.turn, state=TurnState.ANSWERED, answer=answer)
    assert [hit.consultation_id for hit in ledger.search_consultations("sharding searched")] == ["c1"]
    assert "«searches»" in ledger.search_consultations("searched")[0].excerpt
    assert ledger.search_consultations('"AND* near(') != []
    for nothing in ("nowhere", "cache OR nowhere", "", '"*:', "\ud800", "nowhere\0"):
        assert ledger.search_consultations(nothing) == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("nai\u0308ve", True),  # the same letters, otherwise composed
        ("na\u00efve", True),
        ("a.py", True),
        ("py.a", False),
        ('say"it', True),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", True),  # marks between letters
        ("retries \u2014 _", True),
        ("-retries", True),
        ("retr*", False),
    ],
)
def test_word_is_searched_as_it_is_written(ledger: Ledger, query: str, found: bool) -> None:
    text = 'A na\u00efve b/a.py retries; say "it" in \u0939\u093f\u0928\u094d\u0926\u0940.'
    _begin(ledger, "c1", _turn(question=text))
    assert bool(ledger.search_consultations(query)) is found


def test_list_beyond_every_end_is_empty(ledger: Ledger) -> None:
    _begin(ledger, "c1", _turn())
    assert ledger.consultations(10, 10**30) == []


def test_unknown_cost_is_named_not_counted_as_nothing(ledger: Ledger) -> None:
    turns = _begin(ledger, "c1", _turn("priced"), _turn("flat"), _turn("never"))
    for turn in turns[:2]:
        assert ledger.start_consult_turn(turn.turn, 9)
    ledger.end_consult_turn(turns[0].turn, state=TurnState.ANSWERED, answer=Answer(text=""), cost=0.25)
    ledger.end_consult_turn(turns[1].turn, state=TurnState.ANSWERED, answer=Answer(text=""))
    ledger.end_consult_turn(turns[2].turn, state=TurnState.CANCELLED)
    spent = ledger.consult_spent(consultation_id="c1")
    assert (spent.turns, spent.cost, spent.unpriced) == (2, 0.25, ("flat",))


def test_strengths_count_what_was_asked(ledger: Ledger) -> None:
    turns = _begin(ledger, "c1", *(_turn() for _ in range(4)))
    for turn in turns[:3]:
        assert ledger.start_consult_turn(turn.turn, 9)
    ledger.end_consult_turn(turns[0].turn, state=TurnState.ANSWERED, answer=Answer(text=""), cost=1.0)
    for turn in turns[1:3]:
        ledger.end_consult_turn(turn.turn, state=TurnState.FAILED, failure=ReplyFailure.OVERLOADED)
    ledger.end_consult_turn(turns[3].turn, state=TurnState.CANCELLED)
    (row,) = ledger.consult_strengths()
    assert (row.asked, row.answered, row.failed, row.unpriced) == (3, 1, 2, 2)
    assert row.commonest_failure == "overloaded"


def test_deleting_removes_rows_words_and_what_only_it_needed(ledger: Ledger, state: StateFolder) -> None:
    artifacts = Artifacts(state)
    (turn,), (other,) = _begin(ledger, "c1"), _begin(ledger, "c2")
    own, shared = artifacts.put_bytes(b"own"), artifacts.put_bytes(b"shared")
    for name, kept in (("prompt", own), ("stdout", shared)):
        refer = ConsultArtifact(consultation_id="c1", number=1, name=name, artifact=kept, size=1)
        ledger.refer_to_consult_artifacts([refer])
    also = ConsultArtifact(consultation_id="c2", number=1, name="stdout", artifact=shared, size=1)
    with pytest.raises(WrongState):
        ledger.delete_consultation("c1", artifacts)
    for one in (turn, other):
        ledger.end_consult_turn(one.turn, [also], state=TurnState.ANSWERED, answer=Answer(text="gone"))
    ledger.settle_consultation("c1")
    assert ledger.delete_consultation("c1", artifacts) == 3
    with pytest.raises(NotFound):
        ledger.consultation("c1")
    assert [hit.consultation_id for hit in ledger.search_consultations("gone")] == ["c2"]
    assert not artifacts.exists(own) and artifacts.exists(shared)
    assert shared not in dict(ledger.unneeded_artifacts(artifacts, young_seconds=-1))


def test_id_is_found_by_its_beginning_when_that_is_enough(ledger: Ledger) -> None:
    _begin(ledger, "cabc")
    _begin(ledger, "cabd")
    assert ledger.consultation_named("cabc").consultation_id == "cabc"
    for beginning in ("cab", "cx", "c%"):
        with pytest.raises(NotFound):
            ledger.consultation_named(beginning)
