"""The state machine, exhaustively: every state with every event, and no state is a trap."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.contract.errors import WrongState
from baton.contract.workflow import Step
from baton.contract.workflow import WorkflowState as State
from baton.workflow.machine import (
    BACK,
    TRANSITIONS,
    Event,
    LoopFacts,
    Position,
    advance,
    after_synthesis,
    after_tests,
    back_to,
    loop_done,
    possible_events,
    transition,
)

MEANT = """
research: done=plan skipped=plan
plan: done=brief; research
brief: done=implement; research plan
implement: done=test patch=apply not_applied=implement; research plan brief
apply: applied=test not_applied=implement rejected=implement; research plan brief implement
test: passed=review advanced=review failed=fix at_cap=needs_attention; research plan brief implement
review: reviewed=synthesise moved=test; research plan brief implement test
synthesise: clean=completed open=fix unread=review moved=test at_cap=needs_attention; \
research plan brief implement test review
fix: done=test patch=apply_fix not_applied=fix; research plan brief implement test
apply_fix: applied=test not_applied=fix rejected=fix; research plan brief implement
needs_attention:; research plan brief implement test review fix
completed:
cancelled:
"""
"""What is meant, written down apart from the table; `cancelled` and `broken` are said below."""


def meant() -> dict[tuple[State, Event], State]:
    table = {}
    for line in MEANT.strip().splitlines():
        name, _, moves = line.partition(":")
        state = State(name)
        forward, _, back = moves.partition(";")
        for move in forward.split():
            event, _, to = move.partition("=")
            table[state, Event(event)] = State(to)
        for to in back.split():
            table[state, Event(f"to_{to}")] = State(to)
        if not state.ended:
            table[state, Event.CANCELLED] = State.CANCELLED
        if state.step is not None:
            table[state, Event.BROKEN] = state
    return table


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_every_state_with_every_event_is_what_is_meant(state: State, event: Event) -> None:
    wanted = meant().get((state, event))
    if wanted is not None:
        assert transition(state, event) is wanted
        return
    with pytest.raises(WrongState) as refused:
        transition(state, event)
    assert event.value in refused.value.message and state.value in refused.value.message
    assert all(one.value in refused.value.message for one in possible_events(state))


def reachable(start: State) -> set[State]:
    seen, left = {start}, [start]
    while left:
        at = left.pop()
        for (state, _), to in TRANSITIONS.items():
            if state is at and to not in seen:
                seen.add(to)
                left.append(to)
    return seen


def test_every_state_is_reached_from_the_first() -> None:
    assert reachable(State.RESEARCH) == set(State)


@pytest.mark.parametrize("state", [state for state in State if not state.ended])
def test_no_state_is_a_trap(state: State) -> None:
    assert {State.COMPLETED, State.CANCELLED, State.IMPLEMENT} <= reachable(state)


@pytest.mark.parametrize("state", [state for state in State if not state.ended])
def test_each_state_has_a_way_on_a_way_back_and_a_way_out(state: State) -> None:
    events = possible_events(state)
    assert Event.CANCELLED in events
    assert any(TRANSITIONS[state, event] not in (state, State.CANCELLED) for event in events)
    if state is not State.RESEARCH:
        assert any(event in BACK or event in (Event.REJECTED, Event.NOT_APPLIED) for event in events)


@pytest.mark.parametrize("state", [State.COMPLETED, State.CANCELLED])
def test_an_end_is_an_end(state: State) -> None:
    assert possible_events(state) == []


def test_completed_is_reached_only_by_a_clean_synthesis() -> None:
    ways = [key for key, to in TRANSITIONS.items() if to is State.COMPLETED]
    assert ways == [(State.SYNTHESISE, Event.CLEAN)]


def test_a_patch_that_does_not_apply_goes_back_to_who_made_it() -> None:
    assert transition(State.APPLY, Event.NOT_APPLIED) is State.IMPLEMENT
    assert transition(State.APPLY_FIX, Event.NOT_APPLIED) is State.FIX


BOOLS = (False, True)
FACTS = [
    LoopFacts(passed, current, read, serious, missing, finalised)
    for passed, current, read, finalised in itertools.product(BOOLS, repeat=4)
    for serious, missing in itertools.product((0, 2), repeat=2)
]


@pytest.mark.parametrize("state", list(State))
def test_loop_is_done_only_under_all_of_its_conditions(state: State) -> None:
    done = [facts for facts in FACTS if loop_done(facts, state)]
    good = LoopFacts(True, True, True, open_serious=0, missing_serious=0, finalised=True)
    assert done == ([good] if state is State.SYNTHESISE else [])


@pytest.mark.parametrize("facts", FACTS)
@pytest.mark.parametrize("round", [0, 1, 2])
@pytest.mark.parametrize("again", [False, True])
def test_synthesis_always_leads_somewhere_and_to_the_end_only_when_done(
    facts: LoopFacts, round: int, again: bool
) -> None:
    event = after_synthesis(facts, State.SYNTHESISE, round=round, max_rounds=2, may_ask_again=again)
    to = transition(State.SYNTHESISE, event)
    assert (to is State.COMPLETED) == loop_done(facts, State.SYNTHESISE)
    if to is State.FIX:
        assert round < 2
    if event is Event.UNREAD:
        assert again


GOOD = LoopFacts(True, True, True, open_serious=0, missing_serious=0, finalised=True)


@pytest.mark.parametrize(
    ("changed", "round", "again", "event"),
    [
        ({}, 2, False, Event.CLEAN),
        ({"tests_current": False}, 2, True, Event.MOVED),
        ({"tests_current": False, "open_serious": 1, "tests_passed": False}, 0, True, Event.MOVED),
        ({"open_serious": 1}, 1, True, Event.OPEN),
        ({"missing_serious": 1}, 1, True, Event.OPEN),
        ({"tests_passed": False}, 1, True, Event.OPEN),
        ({"open_serious": 1}, 2, True, Event.AT_CAP),
        ({"tests_passed": False, "every_answer_read": False}, 2, True, Event.AT_CAP),
        ({"every_answer_read": False}, 2, True, Event.UNREAD),
        ({"every_answer_read": False}, 0, False, Event.AT_CAP),
    ],
)
def test_synthesis_leads_where_the_records_say(
    changed: dict[str, bool], round: int, again: bool, event: Event
) -> None:
    facts = replace(GOOD, **changed)  # type: ignore[arg-type]
    said = after_synthesis(facts, State.SYNTHESISE, round=round, max_rounds=2, may_ask_again=again)
    assert said is event


@pytest.mark.parametrize(
    ("passed", "failed", "go_on", "round", "event"),
    [
        (True, False, False, 9, Event.PASSED),
        (False, True, False, 1, Event.FAILED),
        (False, True, False, 2, Event.AT_CAP),
        (False, True, True, 2, Event.ADVANCED),
        (False, False, True, 0, Event.BROKEN),
    ],
)
def test_report_leads_on_back_or_nowhere(
    passed: bool, failed: bool, go_on: bool, round: int, event: Event
) -> None:
    assert after_tests(passed, failed, go_on, round, max_rounds=2) is event


@given(st.lists(st.sampled_from(list(Event)), max_size=60))
def test_rounds_only_grow_and_begin_with_a_way_into_fix(events: list[Event]) -> None:
    position = Position(State.RESEARCH)
    for event in events:
        if (position.state, event) not in TRANSITIONS:
            continue
        after = advance(position, event)
        entered = after.state is State.FIX and position.state not in (State.FIX, State.APPLY_FIX)
        assert after.round == position.round + entered
        position = after


def test_replan_goes_back_to_what_can_be_done_again() -> None:
    assert {step for step in Step if back_to(step) is None} == {Step.APPLY, Step.SYNTHESISE}
