"""Weighs a review: the review service takes the dispositions, its record says what follows from them."""

from __future__ import annotations

from collections.abc import Sequence

from baton.contract.errors import InvalidInput, WrongState
from baton.contract.review import Decision, Disposition, GivenFinding, ReviewAction, ReviewCall, ReviewState
from baton.contract.wording import many
from baton.contract.workflow import Step
from baton.engine.blocking import blocking
from baton.workflow.doors import Doors, ground_of
from baton.workflow.history import Job, findings_of, loop_facts, unread_seats
from baton.workflow.machine import Event, after_synthesis
from baton.workflow.outcome import Outcome

REVIEWS_PER_ROUND = 2
"""With a reviewer that cannot be read, a round has so many reviews before it needs attention."""


async def finalise(
    doors: Doors,
    job: Job,
    decisions: Sequence[Decision],
    conclusion: str | None,
    own: list[GivenFinding] | None,
    fields: dict[str, object],
) -> Outcome:
    """Finalise the review and say what follows. Raises `BatonError` for dispositions that do not hold."""
    done = job.last(Step.REVIEW)
    if done is None or done.review_id is None:
        raise WrongState(f"there is no review to weigh; {doors.words.back(job.id, Step.REVIEW)}")
    review_id = done.review_id
    ground = ground_of(doors.house, job.workflow)
    now = await blocking(ground.remember)
    if now.tree == done.tree:
        _refuse_fixed(doors, job, decisions)
    call = ReviewCall(
        action=ReviewAction.FINALISE,
        id=review_id,
        dispositions=list(decisions),
        conclusion=conclusion,
        own_findings=own,
    )
    review = doors.house.ledger.review(review_id)
    if review.state is not ReviewState.FINALISED or decisions or own:
        await doors.reviewing.review(call, doors.session)
    facts = await blocking(lambda: loop_facts(doors.house, job, now.tree, finalised=True))
    event = after_synthesis(
        facts,
        job.workflow.state,
        round=job.workflow.round,
        max_rounds=job.terms.max_fix_rounds,
        may_ask_again=job.reviews_in_round() < REVIEWS_PER_ROUND,
    )
    unread = ", ".join(unread_seats(doors.house, review_id))
    why = {
        Event.OPEN: many(facts.open_serious, "serious finding is", "serious findings are") + " open"
        if facts.open_serious
        else "the tests do not pass",
        Event.MOVED: "the workspace changed since it was tested and reviewed",
        Event.UNREAD: f"the findings of {unread} could not be read; it is asked again",
        Event.AT_CAP: many(facts.open_serious, "serious finding is", "serious findings are")
        + " open"
        + ("" if facts.tests_passed else ", tests do not pass")
        + (f", {unread} could not be read" if unread else "")
        + f", and {job.workflow.round} of {job.terms.max_fix_rounds} fix rounds are used",
    }.get(event)
    return Outcome(event, why, {**fields, "review_id": review_id, "result": now.commit, "tree": now.tree})


def _refuse_fixed(doors: Doors, job: Job, decisions: Sequence[Decision]) -> None:
    """Nothing changed since the review, so nothing that it found first can be fixed."""
    carried = {one.id for one in findings_of(doors.house, job) if one.carried}
    for decision in decisions:
        if decision.disposition is Disposition.FIXED and decision.finding not in carried:
            raise InvalidInput(
                f"dispositions: {decision.finding} is said to be fixed, but nothing changed since it was"
                " reviewed; mark it open, and the fix is the next step"
            )
