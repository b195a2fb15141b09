"""What the doors call: plan, run, finalise, retry and recheck a review, and look at one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from baton.consult.agents import agent_of, host_of
from baton.consult.content import Content
from baton.consult.outgoing import prose, refuse_secrets
from baton.consult.plan import Plan, candidates_of
from baton.consult.present import whole_answer
from baton.consult.routing import Wanted, why_not
from baton.consult.service import ConsultService
from baton.contract.argument_names import renamed
from baton.contract.errors import InvalidInput, NoAgent, NotAllowed, NotFound, WrongState
from baton.contract.review import Disposition, ReviewAction, ReviewCall, ReviewPart, ReviewState
from baton.contract.session import Session
from baton.contract.wording import many
from baton.engine.blocking import blocking
from baton.engine.paging import entries_window, text_window
from baton.ledger.consult_records import ConsultationRecord
from baton.ledger.ids import new_consultation_id
from baton.ledger.review_records import ReviewRecord
from baton.ledger.reviews import serious_open
from baton.review.asking import once_more
from baton.review.confirm import Person, Says, approval_of, fits, nobody, question_to_person
from baton.review.decisions import decisions_of
from baton.review.material import gather_again
from baton.review.plan import (
    approved,
    compose,
    host_finding,
    make_review_plan,
    masked_findings,
)
from baton.review.present import finding_shown, planned, present
from baton.review.setting import Setting, setting_for
from baton.review.settle import RECHECK, ask_more, seat_of, settle
from baton.review.stored import StoredPlan
from baton.review.words import TOOL, Words

PLAN_SECONDS = 24 * 3600.0
"""How long a plan can be run."""

_NOT_SENT = "nothing was sent"


class ReviewService:
    """A session's door to reviews."""

    def __init__(self, consulting: ConsultService, words: Words = TOOL) -> None:
        """`words`: how answers and errors name arguments, and what can be done next."""
        self._words = words
        self._consulting = consulting
        self._house = consulting.house
        self._ledger = consulting.house.ledger

    async def review(
        self, call: ReviewCall, session: Session, person: Person = nobody, *, any_round: bool = False
    ) -> dict[str, Any]:
        """Do one action. Raises `BatonError`; nothing was sent then, unless it says so.

        `any_round` is for who bounds rechecks otherwise than by `review.max_fix_rounds`.
        """
        try:
            return await self._review(call, session, person, any_round)
        except InvalidInput as fault:
            raise renamed(fault, self._words.arguments, "review") from None

    async def _review(
        self, call: ReviewCall, session: Session, person: Person, any_round: bool
    ) -> dict[str, Any]:
        await self._consulting.recover()
        if call.action is ReviewAction.PLAN:
            return await self._plan(call, session)
        if call.id is None:
            raise InvalidInput(f"id: {call.action.value} needs the id of a review")
        review = await blocking(self._ledger.review, call.id)
        match call.action:
            case ReviewAction.RUN:
                return await self._run(review, call, session, person)
            case ReviewAction.FINALISE:
                return await blocking(self._finalise, await blocking(self._settled, review), call)
            case ReviewAction.RETRY:
                return await self._retry(await blocking(self._settled, review), call, session)
            case ReviewAction.RECHECK:
                settled = await blocking(self._settled, review)
                return await self._plan(call, session, settled, any_round)
        return await self._status(review, call)

    # -- before anything is sent -------------------------------------------------------------------

    async def _plan(
        self,
        call: ReviewCall,
        session: Session,
        parent: ReviewRecord | None = None,
        any_round: bool = False,
    ) -> dict[str, Any]:
        setting = setting_for(self._house, call.workspace or (parent.workspace if parent else None), session)
        before = None
        if parent is not None:
            most = None if any_round else setting.rules.max_fix_rounds
            before = (parent, self._to_recheck(parent, most))
        looked = self._consulting.look, self._consulting.adapter_of
        made = await make_review_plan(setting, call, *looked, before)
        await blocking(self._ledger.expire_plans, time.time() - PLAN_SECONDS)
        review = await blocking(self._ledger.begin_review, made.record, made.own, made.carried)
        token = made.token if setting.rules.confirmation == "token" else None
        return planned(review, made.shown, token)

    def _to_recheck(self, parent: ReviewRecord, most: int | None) -> list[Any]:
        if parent.state is not ReviewState.FINALISED:
            raise WrongState(f"review {parent.review_id} is {parent.state.value}; finalise it first")
        if most is not None and parent.round >= most:
            raise WrongState(
                f"{many(parent.round, 'fix round is', 'fix rounds are')} over"
                " (review.max_fix_rounds); what is open needs the person"
            )
        closed = (Disposition.REJECTED, Disposition.ACCEPTED_RISK)
        # The last word on each: what the reviewers of a recheck called gone need not be looked at again.
        last = {step.number: step.source for step in self._ledger.dispositions(parent.review_id)}
        return [
            one
            for one in self._ledger.review_findings(parent.review_id)
            if one.disposition not in closed
            and not (one.disposition is Disposition.FIXED and last.get(one.number) == RECHECK)
        ]

    async def _run(
        self, review: ReviewRecord, call: ReviewCall, session: Session, person: Person
    ) -> dict[str, Any]:
        if review.state is not ReviewState.PLANNED:
            if review.consultation_id is not None:
                # Run before: the same answers, never the same question twice.
                return await self._wait(review.review_id, call.wait_seconds)
            raise WrongState(f"review {review.review_id} is {review.state.value}; plan anew")
        if time.time() - review.created_at > PLAN_SECONDS:
            await blocking(self._ledger.expire_plans, time.time() - PLAN_SECONDS)
            raise WrongState(f"review {review.review_id} was planned more than a day ago; plan anew")
        began = time.monotonic()
        setting = setting_for(self._house, review.workspace, session)
        prepared = await self._prepare(setting, review, call)
        confirmed = await self._confirmed(setting, review, call, person)
        await blocking(self._begin, review, prepared, confirmed)
        # The person's time is a part of what the client waits.
        left = max(0.0, call.wait_seconds - (time.monotonic() - began))
        return await self._wait(review.review_id, left)

    async def _prepare(self, setting: Setting, review: ReviewRecord, call: ReviewCall) -> Plan:
        """The very plan that was shown, made again. Raises `BatonError` when it is another one by now."""
        plan = StoredPlan.of(review)
        gathered = await blocking(gather_again, plan.wanted, setting.bounds, plan.manifest)
        host = host_of(self._house.env, setting.consult, setting.session)
        candidates = candidates_of(setting.consult, self._consulting.adapter_of)
        for reviewer in plan.seats:
            if reviewer.agent not in candidates:
                raise NoAgent(f"{reviewer.agent} is not asked: the policy has no such agent any more")
            reason = why_not(candidates[reviewer.agent], host, Wanted("review"), by_name=True)
            if reason is None:
                agent = agent_of(reviewer.agent, setting.consult)
                reason = (await self._consulting.look(self._house, agent)).missing
            if reason is not None:
                raise NoAgent(f"{reviewer.agent} is not asked: {reason}")
        ask, outgoing = compose(setting, review.goal, plan.persona, gathered, plan.earlier_findings)
        now = approved(review.goal, review.mode, gathered, plan.seats, ask, setting.consult)
        if approval_of(now) != review.approval:
            raise WrongState(
                f"the policy changed since review {review.review_id} was planned; {_NOT_SENT}; plan anew"
            )
        if setting.rules.secrets == "refuse":
            refuse_secrets(outgoing.seen.secrets, "review.secrets = refuse")
        elif call.secrets.value != "send":
            refuse_secrets(
                outgoing.seen.secrets, "take them out, or run with secrets=send when the person agrees"
            )
        profile = setting.session.profile
        turns = tuple(ask.first(reviewer, setting.consult, profile) for reviewer in plan.seats)
        consultation = ConsultationRecord(
            consultation_id=new_consultation_id(),
            kind="review",
            parent=review.review_id,
            workspace=review.workspace,
            host={"runtime": host.runtime, "models": list(host.models)},
            title=" ".join(review.goal.split())[:120],
        )
        return Plan(consultation, turns, setting.consult, False, {})

    async def _confirmed(
        self, setting: Setting, review: ReviewRecord, call: ReviewCall, person: Person
    ) -> str:
        """Who agreed. Raises `NotAllowed` for a no, `InvalidInput` without a token."""
        says = await person(question_to_person(review))
        if says is Says.YES:
            return "person"
        if says is Says.NO:
            await blocking(self._cancel_plan, review)
            raise NotAllowed(f"the person said no to review {review.review_id}; {_NOT_SENT}")
        if setting.rules.confirmation == "person":
            raise NotAllowed(
                f"review.confirmation = person, and the session's program cannot ask the person; {_NOT_SENT}"
            )
        if call.confirm is None:
            raise InvalidInput(f"confirm: the token that the plan gave is needed; {_NOT_SENT}")
        if not fits(call.confirm, review.approval, review.token):
            raise InvalidInput(f"confirm: not the token of this plan; {_NOT_SENT}")
        return "token"

    def _cancel_plan(self, review: ReviewRecord) -> None:
        self._ledger.change_review(
            review.review_id,
            (ReviewState.PLANNED,),
            state=ReviewState.CANCELLED,
            token=None,
            note="the person said no",
            ended_at=time.time(),
        )

    def _begin(self, review: ReviewRecord, plan: Plan, confirmed: str) -> None:
        """Spend the token and record the question in one step; then it is asked, by whoever is alive."""

        def also() -> None:
            self._ledger.change_review(
                review.review_id,
                (ReviewState.PLANNED,),
                state=ReviewState.RUNNING,
                consultation_id=plan.consultation.consultation_id,
                token=None,
                confirmed_by=confirmed,
            )

        self._consulting.begin(plan, also)

    # -- afterwards --------------------------------------------------------------------------------

    async def _wait(self, review_id: str, seconds: float) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while True:
            review = await blocking(self._settled, self._ledger.review(review_id))
            left = until - time.monotonic()
            if review.state is not ReviewState.RUNNING or review.consultation_id is None or left <= 0:
                return await blocking(self._shown, review)
            await self._consulting.wait(review.consultation_id, left)

    def _settled(self, review: ReviewRecord) -> ReviewRecord:
        return settle(self._consulting, review)

    def _shown(self, review: ReviewRecord) -> dict[str, Any]:
        name = review.review_id
        findings, reads = self._ledger.review_findings(name), self._ledger.review_reads(name)
        return present(review, findings, reads, self._words)

    async def _retry(self, review: ReviewRecord, call: ReviewCall, session: Session) -> dict[str, Any]:
        setting = setting_for(self._house, review.workspace, session)
        states = (ReviewState.AWAITING_SYNTHESIS, ReviewState.FAILED, ReviewState.CANCELLED)
        if review.state not in states or review.consultation_id is None:
            raise WrongState(f"review {review.review_id} is {review.state.value}; there is nothing to retry")
        await blocking(self._ask_again, review, call.reviewer, setting, states)
        return await self._wait(review.review_id, call.wait_seconds)

    def _ask_again(
        self, review: ReviewRecord, seat: str | None, setting: Setting, states: Sequence[ReviewState]
    ) -> None:
        consultation = self._ledger.consultation(str(review.consultation_id))
        turns = self._ledger.consult_turns(consultation.consultation_id)
        parsed = {one.seat for one in self._ledger.review_reads(review.review_id) if one.parsed}
        first = {seat_of(turn): turn for turn in reversed(turns)}
        if seat is not None and seat not in first:
            raise InvalidInput(f"reviewer: {seat!r} is not in this review; it has {', '.join(sorted(first))}")
        wanted = [name for name in first if name not in parsed and seat in (None, name)]
        if not wanted:
            raise WrongState("every reviewer's findings are there; nobody is asked twice for the same")
        gone = [first[name].agent for name in wanted if first[name].agent not in setting.consult.agents]
        if gone:
            raise NoAgent(f"{gone[0]} is not asked: the policy has no such agent any more")
        content = Content(self._house, consultation)
        planned_turns = [once_more(content, first[name], setting.consult) for name in wanted]
        ask_more(self._consulting, review, turns, planned_turns, states)

    def _finalise(self, review: ReviewRecord, call: ReviewCall) -> dict[str, Any]:
        places = StoredPlan.of(review).places
        own, masked = masked_findings(call.own_findings or ())
        more = [host_finding(review.review_id, given, places) for given in own]
        conclusion, what = prose(call.conclusion or "")
        masked += what
        with self._ledger.transaction():
            # Looked at again here: another session may have asked the reviewers once more meanwhile.
            state = self._ledger.review(review.review_id).state
            if state not in (ReviewState.AWAITING_SYNTHESIS, ReviewState.FINALISED):
                raise WrongState(
                    f"review {review.review_id} is {state.value}; this is possible only when it is"
                    " awaiting_synthesis or finalised"
                )
            if more:
                self._ledger.add_findings(review.review_id, more)
            findings = self._ledger.review_findings(review.review_id)
            decisions, what = decisions_of(review, call, {one.id for one in findings})
            masked += what
            decided = {f"F{one.number}" for one in decisions}
            missing = [
                one.id
                for one in findings
                if one.severity.serious and not one.answered and one.id not in decided
            ]
            if missing:
                lack = "has none" if len(missing) == 1 else "have none"
                raise InvalidInput(
                    f"dispositions: every critical and important finding needs one; {', '.join(missing)}"
                    f" {lack} (fixed, rejected or accepted_risk with a reason, or open)"
                )
            review = self._ledger.decide(
                review.review_id, decisions, conclusion=conclusion or None, finalise=True
            )
        findings = self._ledger.review_findings(review.review_id)
        counts: dict[str, int] = {}
        for finding in findings:
            counts[finding.disposition.value] = counts.get(finding.disposition.value, 0) + 1
        shown = self._shown(review)
        keep = ("reviewId", "state", "unparsed", "note", "next")
        still = [one.id for one in serious_open(findings)]
        return {name: shown[name] for name in keep if name in shown} | {
            "dispositions": counts,
            "openSerious": len(still),
            **({"open": still[:50]} if still else {}),
            **({"masked": masked} if masked else {}),
        }

    async def _status(self, review: ReviewRecord, call: ReviewCall) -> dict[str, Any]:
        if review.state is ReviewState.RUNNING:
            await self._wait(review.review_id, call.wait_seconds)
        return await blocking(self._look, review.review_id, call)

    def _look(self, review_id: str, call: ReviewCall) -> dict[str, Any]:
        review = self._ledger.review(review_id)
        known = {"reviewId": review_id, "state": review.state.value, "what": call.what.value}
        match call.what:
            case ReviewPart.FINDINGS:
                found = [
                    finding_shown(one, detail=True, most=4_000)
                    | {
                        name: value
                        for name, value in (("suggestion", one.suggestion), ("reason", one.reason))
                        if value
                    }
                    for one in self._ledger.review_findings(review_id)
                ]
                return known | entries_window("findings", found, call.offset, call.limit)
            case ReviewPart.HISTORY:
                steps = [
                    {
                        "finding": f"F{one.number}",
                        "disposition": one.disposition.value,
                        "reason": one.reason,
                        "by": one.source,
                        "at": round(one.at),
                    }
                    for one in self._ledger.dispositions(review_id)
                ]
                return known | entries_window("history", steps, call.offset, call.limit)
            case ReviewPart.ANSWER:
                return known | text_window(self._answers(review, call.reviewer), call.offset, call.limit)
            case ReviewPart.MATERIAL:
                material = [piece.wire() for piece in StoredPlan.of(review).manifest]
                return known | entries_window("material", material, call.offset, call.limit)
        return self._shown(review) | ({"conclusion": review.conclusion} if review.conclusion else {})

    def _answers(self, review: ReviewRecord, seat: str | None) -> str:
        if review.consultation_id is None:
            raise NotFound(f"review {review.review_id} was not run; it has no answers")
        content = Content(self._house, self._ledger.consultation(review.consultation_id))
        texts = []
        for turn in self._ledger.consult_turns(review.consultation_id):
            answer = content.answer(turn)
            if answer is not None and seat in (None, seat_of(turn)):
                texts.append(whole_answer(turn, answer))
        if not texts:
            raise NotFound(f"review {review.review_id} has no answer{f' of {seat}' if seat else ''}")
        return "\n".join(texts)
