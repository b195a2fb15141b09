"""The states of a workflow and what moves it, as data; pure. No state is a trap: each has a way on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from baton.contract.errors import WrongState
from baton.contract.workflow import Step
from baton.contract.workflow import WorkflowState as State


class Event(StrEnum):
    """What can happen to a workflow."""

    DONE = "done"
    """The step did its work, which is in the workspace where it has one there."""
    SKIPPED = "skipped"
    PATCH = "patch"
    """The step made a change that waits to be applied."""
    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    """What the step made does not apply."""
    REJECTED = "rejected"
    """The session does not want what the step made."""
    PASSED = "passed"
    FAILED = "failed"
    """Tests failed, and a round is left."""
    ADVANCED = "advanced"
    """Tests did not pass, and the policy goes on all the same."""
    REVIEWED = "reviewed"
    UNREAD = "unread"
    """A reviewer's findings could not be read, and it may be asked again."""
    CLEAN = "clean"
    OPEN = "open"
    """Something serious is open, and a round is left."""
    AT_CAP = "at_cap"
    """Something is open, and no round is left."""
    MOVED = "moved"
    """The workspace is no longer what was tested."""
    BROKEN = "broken"
    """The step failed without an answer; it can be tried again."""
    TO_RESEARCH = "to_research"
    TO_PLAN = "to_plan"
    TO_BRIEF = "to_brief"
    TO_IMPLEMENT = "to_implement"
    TO_TEST = "to_test"
    TO_REVIEW = "to_review"
    TO_FIX = "to_fix"
    CANCELLED = "cancelled"


_FORWARD: dict[tuple[State, Event], State] = {
    (State.RESEARCH, Event.DONE): State.PLAN,
    (State.RESEARCH, Event.SKIPPED): State.PLAN,
    (State.PLAN, Event.DONE): State.BRIEF,
    (State.BRIEF, Event.DONE): State.IMPLEMENT,
    (State.IMPLEMENT, Event.DONE): State.TEST,
    (State.IMPLEMENT, Event.PATCH): State.APPLY,
    (State.IMPLEMENT, Event.NOT_APPLIED): State.IMPLEMENT,
    (State.APPLY, Event.APPLIED): State.TEST,
    (State.APPLY, Event.NOT_APPLIED): State.IMPLEMENT,
    (State.APPLY, Event.REJECTED): State.IMPLEMENT,
    (State.TEST, Event.PASSED): State.REVIEW,
    (State.TEST, Event.ADVANCED): State.REVIEW,
    (State.TEST, Event.FAILED): State.FIX,
    (State.TEST, Event.AT_CAP): State.NEEDS_ATTENTION,
    (State.REVIEW, Event.REVIEWED): State.SYNTHESISE,
    (State.REVIEW, Event.MOVED): State.TEST,
    (State.SYNTHESISE, Event.CLEAN): State.COMPLETED,
    (State.SYNTHESISE, Event.OPEN): State.FIX,
    (State.SYNTHESISE, Event.UNREAD): State.REVIEW,
    (State.SYNTHESISE, Event.MOVED): State.TEST,
    (State.SYNTHESISE, Event.AT_CAP): State.NEEDS_ATTENTION,
    (State.FIX, Event.DONE): State.TEST,
    (State.FIX, Event.PATCH): State.APPLY_FIX,
    (State.FIX, Event.NOT_APPLIED): State.FIX,
    (State.APPLY_FIX, Event.APPLIED): State.TEST,
    (State.APPLY_FIX, Event.NOT_APPLIED): State.FIX,
    (State.APPLY_FIX, Event.REJECTED): State.FIX,
}

_STEPS = tuple(state for state in State if state.step is not None)
_MADE = (State.APPLY, State.TEST, State.REVIEW, State.SYNTHESISE, State.FIX, State.APPLY_FIX)
"""States with something made before them."""

BACK: dict[Event, tuple[State, tuple[State, ...]]] = {
    Event.TO_RESEARCH: (State.RESEARCH, (State.PLAN, State.BRIEF, State.IMPLEMENT, *_MADE)),
    Event.TO_PLAN: (State.PLAN, (State.BRIEF, State.IMPLEMENT, *_MADE)),
    Event.TO_BRIEF: (State.BRIEF, (State.IMPLEMENT, *_MADE)),
    Event.TO_IMPLEMENT: (State.IMPLEMENT, _MADE),
    Event.TO_TEST: (State.TEST, (State.REVIEW, State.SYNTHESISE, State.FIX)),
    Event.TO_REVIEW: (State.REVIEW, (State.SYNTHESISE,)),
    Event.TO_FIX: (State.FIX, ()),
}
"""Where a replan leads, and from where beside `needs_attention`, from which it leads everywhere."""

TRANSITIONS: dict[tuple[State, Event], State] = {
    **_FORWARD,
    **{(state, Event.BROKEN): state for state in _STEPS},
    **{(state, event): to for event, (to, places) in BACK.items() for state in places},
    **{(State.NEEDS_ATTENTION, event): to for event, (to, _) in BACK.items()},
    **{(state, Event.CANCELLED): State.CANCELLED for state in (*_STEPS, State.NEEDS_ATTENTION)},
}
"""Every move there is; what is not here is refused."""


def transition(state: State, event: Event) -> State:
    """Where the event leads. Raises `WrongState` that names what is possible."""
    found = TRANSITIONS.get((state, event))
    if found is None:
        possible = ", ".join(one.value for one in possible_events(state)) or "nothing any more"
        raise WrongState(
            f"the workflow is {state.value}: {event.value} is not possible; possible: {possible}"
        )
    return found


def possible_events(state: State) -> list[Event]:
    return [event for event in Event if (state, event) in TRANSITIONS]


def back_to(step: Step) -> Event | None:
    """The event by which a replan goes back to a step; None for the steps that only follow from others."""
    return next((event for event in BACK if event.value == f"to_{step.value}"), None)


@dataclass(frozen=True)
class Position:
    """Where a workflow is."""

    state: State
    round: int = 0
    """Fix rounds begun."""


def advance(position: Position, event: Event) -> Position:
    """The position after an event. Every way into `fix` but a fix made again begins a round."""
    state = transition(position.state, event)
    begins = state is State.FIX and position.state not in (State.FIX, State.APPLY_FIX)
    return Position(state, position.round + begins)


@dataclass(frozen=True)
class LoopFacts:
    """What decides whether the job is done; read from records, never asked of anybody."""

    tests_passed: bool
    """The last report is a pass."""
    tests_current: bool
    """It ran on the workspace as it is now, which is also what was reviewed."""
    every_answer_read: bool
    """Each reviewer answered, and its findings could be read and are kept."""
    open_serious: int
    missing_serious: int
    """Serious findings that nobody answered."""
    finalised: bool


def loop_done(facts: LoopFacts, state: State) -> bool:
    """Whether the workflow may end as completed."""
    return (
        state is State.SYNTHESISE
        and facts.finalised
        and facts.tests_passed
        and facts.tests_current
        and facts.every_answer_read
        and facts.open_serious == 0
        and facts.missing_serious == 0
    )


def after_tests(passed: bool, failed: bool, advance_on_failed: bool, round: int, max_rounds: int) -> Event:
    """What a test report means. What neither passed nor failed proves nothing, and is tried again."""
    if passed:
        return Event.PASSED
    if not failed:
        return Event.BROKEN
    if advance_on_failed:
        return Event.ADVANCED
    return Event.FAILED if round < max_rounds else Event.AT_CAP


def after_synthesis(
    facts: LoopFacts, state: State, *, round: int, max_rounds: int, may_ask_again: bool
) -> Event:
    """What the state of the findings means."""
    if not facts.tests_current:
        return Event.MOVED
    if loop_done(facts, state):
        return Event.CLEAN
    if facts.open_serious or facts.missing_serious or not facts.tests_passed:
        return Event.OPEN if round < max_rounds else Event.AT_CAP
    return Event.UNREAD if may_ask_again else Event.AT_CAP
