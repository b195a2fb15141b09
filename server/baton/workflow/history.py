"""What a workflow's records say: what was made, what is open, what was spent."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from baton.contract.errors import NotFound, SpendLimit
from baton.contract.workflow import Step, StepState, TestOutcome, TestReport
from baton.engine.house import House
from baton.ledger.review_records import ReviewFindingRecord
from baton.ledger.reviews import serious_open
from baton.ledger.workflow_records import WorkflowRecord, WorkflowStepRecord
from baton.review.present import finding_shown
from baton.workflow.machine import LoopFacts
from baton.workflow.terms import MAKERS, Bound, Party, Terms

Steps = Sequence[WorkflowStepRecord]


@dataclass(frozen=True)
class Job:
    """A workflow with its terms and everything that happened in it."""

    workflow: WorkflowRecord
    terms: Terms
    steps: Steps

    @classmethod
    def read(cls, house: House, workflow_id: str) -> Job:
        """Raises `NotFound`."""
        workflow = house.ledger.workflow(workflow_id)
        terms = Terms.model_validate(workflow.terms)
        return cls(workflow, terms, house.ledger.workflow_steps(workflow_id))

    @property
    def id(self) -> str:
        return self.workflow.workflow_id

    @property
    def bound(self) -> Bound | None:
        """Who does the step that is due; None when none is."""
        step = self.workflow.state.step
        return None if step is None else self.terms.bindings[step]

    @property
    def running(self) -> WorkflowStepRecord | None:
        return next((one for one in reversed(self.steps) if one.state is StepState.RUNNING), None)

    @property
    def preview(self) -> WorkflowStepRecord | None:
        return next((one for one in reversed(self.steps) if one.state is StepState.PREVIEWED), None)

    def last(self, *steps: Step) -> WorkflowStepRecord | None:
        """The latest of these steps that did its work."""
        return next(
            (one for one in reversed(self.steps) if one.step in steps and one.state is StepState.DONE), None
        )

    def product(self, step: Step) -> str | None:
        done = self.last(step)
        return None if done is None else done.product

    @property
    def made(self) -> WorkflowStepRecord | None:
        """The latest change that an implementing or fixing step made."""
        return self.last(*MAKERS)

    @property
    def ground(self) -> str:
        """The commit of the workspace as the workflow last knew it."""
        for one in reversed(self.steps):
            if one.state is StepState.DONE and one.tree is not None and one.result is not None:
                return one.result
        return self.workflow.base

    @property
    def report(self) -> TestReport | None:
        done = self.last(Step.TEST)
        return None if done is None else done.report

    @property
    def refusal(self) -> str | None:
        """Why what was made last is not wanted or does not apply, for whoever makes it again."""
        for one in reversed(self.steps):
            if one.state is StepState.FAILED and one.step in (*MAKERS, Step.APPLY):
                return one.detail
            if one.state is StepState.DONE:
                return None
        return None

    @property
    def last_is_review(self) -> bool:
        """Whether what has to be fixed comes from a review, and not from tests that failed."""
        for one in reversed(self.steps):
            if one.state is StepState.DONE and one.step in (Step.TEST, Step.SYNTHESISE):
                return one.step is Step.SYNTHESISE
        return False

    def makers(self) -> list[tuple[Step, Party]]:
        """Who really implemented and fixed, as it was reported."""
        return [
            (one.step, party)
            for one in self.steps
            if one.step in MAKERS and one.state is StepState.DONE
            for party in Bound.model_validate(one.binding).parties
        ]

    def planners(self) -> list[tuple[Step, Party]]:
        return [
            (one.step, party)
            for one in self.steps
            if one.step is Step.PLAN and one.state is StepState.DONE
            for party in Bound.model_validate(one.binding).parties
        ]

    def reviews_in_round(self) -> int:
        return sum(
            one.step is Step.REVIEW and one.state is StepState.DONE and one.round == self.workflow.round
            for one in self.steps
        )


def findings_of(house: House, job: Job) -> list[ReviewFindingRecord]:
    """The findings of the latest review, from its own record."""
    done = job.last(Step.REVIEW)
    if done is None or done.review_id is None:
        return []
    return house.ledger.review_findings(done.review_id)


def unread_seats(house: House, review_id: str) -> list[str]:
    """Reviewers without findings that could be read."""
    plan = house.ledger.review(review_id).plan
    reviewers = plan.get("reviewers")
    seats = [one["seat"] for one in reviewers if isinstance(one, dict)] if isinstance(reviewers, list) else []
    parsed = {read.seat for read in house.ledger.review_reads(review_id) if read.parsed}
    return [str(seat) for seat in seats if seat not in parsed]


def loop_facts(house: House, job: Job, tree: str, *, finalised: bool) -> LoopFacts:
    """What the records say, for the tree that the workspace has now."""
    review, report = job.last(Step.REVIEW), job.report
    findings = findings_of(house, job)
    read = review is not None and review.review_id is not None and not unread_seats(house, review.review_id)
    return LoopFacts(
        tests_passed=report is not None and report.outcome is TestOutcome.PASSED,
        tests_current=report is not None and review is not None and report.tree == review.tree == tree,
        every_answer_read=read,
        open_serious=len(serious_open(findings)),
        missing_serious=sum(one.severity.serious and not one.answered for one in findings),
        finalised=finalised,
    )


def open_findings(house: House, job: Job) -> list[dict[str, Any]]:
    """Serious findings that are open, as whoever fixes is told."""
    return [finding_shown(one, detail=True, most=4_000) for one in serious_open(findings_of(house, job))]


@dataclass(frozen=True)
class Used:
    """What a workflow has used so far."""

    turns: int
    cost: float
    unpriced: tuple[str, ...]


def used(house: House, job: Job) -> Used:
    """Questions put to agents, reviewers included, and attempts of workers; costs as they were reported."""
    consultations = {one.consultation_id for one in job.steps if one.consultation_id}
    for review_id in {one.review_id for one in job.steps if one.review_id}:
        # A review that was forgotten took its consultation along.
        with suppress(NotFound):
            asked = house.ledger.review(review_id).consultation_id
            if asked is not None:
                consultations.add(asked)
    turns, cost, unpriced = 0, 0.0, set[str]()
    for consultation_id in consultations:
        spent = house.ledger.consult_spent(consultation_id=consultation_id)
        turns, cost = turns + spent.turns, cost + spent.cost
        unpriced |= set(spent.unpriced)
    for run_id in {one.run_id for one in job.steps if one.run_id}:
        attempts = house.ledger.attempts_made(run_id)
        turns += attempts
        if attempts:
            unpriced.add("worker")
    return Used(turns, cost, tuple(sorted(unpriced)))


def check_ceilings(house: House, job: Job, asking: int) -> None:
    """Raises `SpendLimit` when `asking` more may not be asked; the token of the step is not spent then."""
    terms, spent = job.terms, used(house, job)
    if terms.max_turns and spent.turns + asking > terms.max_turns:
        raise SpendLimit(
            f"{spent.turns} of {terms.max_turns} turns of this workflow are used and {asking} more would be"
            " (workflow.spend.max_turns_per_workflow at its start); nothing was sent; a replan takes the"
            " policy's new ceiling"
        )
    if terms.max_cost and spent.cost >= terms.max_cost:
        floor = f", without {', '.join(spent.unpriced)}, which report no cost" if spent.unpriced else ""
        raise SpendLimit(
            f"{spent.cost:.2f} of {terms.max_cost:.2f} US dollars of this workflow are spent{floor}"
            " (workflow.spend.max_cost_per_workflow at its start); nothing was sent"
        )
