"""What the doors call: ask other agents, and look at what was asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from baton.consult import spend
from baton.consult.adapters import adapter_of
from baton.consult.agents import AdapterOf, Look, ProgramLook
from baton.consult.content import Content
from baton.consult.launch import Start, recover_consultations, start_asking
from baton.consult.outgoing import SHOWN
from baton.consult.plan import Plan, make_plan
from baton.consult.present import material_shown, present
from baton.consult.records import Records
from baton.consult.request import TurnRequest
from baton.contract.consult import ConsultCall, RecordsAction, RecordsCall
from baton.contract.errors import Busy, InvalidInput, WrongState
from baton.contract.session import Session
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.ledger.consult_records import ConsultTurnRecord
from baton.ledger.consultations import DAY
from baton.ledger.locks import FileLock

LOCK_SECONDS = 5.0

RECOVERY_SECONDS = 30.0
"""Between two looks for consultations whose process died; while one is waited for, 2 seconds."""


class ConsultService:
    """A session's door to other agents. What it asked goes on without it."""

    def __init__(
        self,
        house: House,
        look: Look | None = None,
        start: Start = start_asking,
        adapter_of: AdapterOf = adapter_of,
    ) -> None:
        """Beside the house, what tests put in the place of the programs of this machine."""
        self.house = house
        self.look = look or ProgramLook()
        self.adapter_of = adapter_of
        self._start = start
        self._recovered_at: float | None = None

    async def consult(self, call: ConsultCall, session: Session) -> dict[str, Any]:
        """Ask; the answers, or where it is after `waitSeconds`.

        Raises `BatonError` when nothing is asked, with why. The failure of an agent is part of the answer:
        nobody else is asked in its place.
        """
        await self.recover()
        plan = await make_plan(self.house, call, session, self.look, self.adapter_of)
        if call.dry_run:
            return await blocking(self._dry_run, plan)
        consultation_id = await blocking(self.begin, plan)
        return await self.wait(consultation_id, call.wait_seconds)

    async def records(self, call: RecordsCall, session: Session) -> dict[str, Any]:
        """Read, wait for, cancel, list, search or delete. Raises `BatonError`."""
        await self.recover()
        if call.action is RecordsAction.WAIT:
            if call.id is None:
                raise InvalidInput("id: wait needs the id of a consultation")
            return await self.wait(call.id, call.wait_seconds)
        records = Records(self.house)
        if call.action is RecordsAction.AGENTS:
            return await records.agents(session, self.look, self.adapter_of)
        return await blocking(records.do, call)

    async def wait(self, consultation_id: str, seconds: float) -> dict[str, Any]:
        """Until it rests, at most so long; what there is then. To be cancelled ends the waiting only."""
        ledger = self.house.ledger
        until = time.monotonic() + seconds
        version = ledger.data_version()
        while not ledger.consultation(consultation_id).state.at_rest:
            left = until - time.monotonic()
            if left <= 0:
                break
            version = await ledger.changed(version, min(left, 2.0))
            # A process that was killed changes nothing in the ledger; its lock is free.
            await self.recover(every=2.0)
        return await blocking(self._shown, consultation_id)

    def _shown(self, consultation_id: str) -> dict[str, Any]:
        consultation = self.house.ledger.consultation(consultation_id)
        turns = self.house.ledger.consult_turns(consultation_id)
        content = Content(self.house, consultation)
        last = [(turn, content.answer(turn)) for turn in turns if turn.round == turns[-1].round]
        return present(consultation, last)

    def begin(self, plan: Plan, also: Callable[[], None] | None = None) -> str:
        """Write everything down, then start the process that asks; the consultation's id.

        `also` writes what belongs to it in the same transaction; nothing is asked when it raises.
        """
        consultation_id = plan.consultation.consultation_id
        lock = FileLock(self.house.state.consultation_lock(consultation_id))
        try:
            lock.acquire(timeout=LOCK_SECONDS)
        except Busy:
            raise WrongState(f"consultation {consultation_id} is at work; wait for it") from None
        try:
            self._write(plan, also)
        except BaseException:
            lock.release()
            raise
        self._start(self.house, consultation_id, lock)
        return consultation_id

    def _write(self, plan: Plan, also: Callable[[], None] | None) -> None:
        ledger, consultation = self.house.ledger, plan.consultation
        name = consultation.consultation_id
        content = Content(self.house, consultation)
        before = len(ledger.consult_turns(name)) if plan.follows else 0
        texts = [
            content.put_text(number, what, text)
            for number, turn in enumerate(plan.turns, start=before + 1)
            for what, text in turn.texts.items()
        ]
        turns = [turn.record for turn in plan.turns]
        with ledger.transaction():
            if also is not None:
                also()
            # Together with the record, so that calls at the same moment cannot all pass below one ceiling.
            spent = ledger.consult_spent(consultation_id=name) if plan.follows else None
            day = ledger.consult_spent(since=time.time() - DAY)
            spend.check(plan.rules.spend, len(turns), day, spent)
            turns = [_limited(turn, spend.left(plan.rules.spend, len(turns), day, spent)) for turn in turns]
            if plan.follows:
                ledger.continue_consultation(name, turns)
            else:
                ledger.begin_consultation(consultation, turns)
            ledger.refer_to_consult_artifacts([text for text in texts if text is not None])

    def _dry_run(self, plan: Plan) -> dict[str, Any]:
        ledger = self.house.ledger
        asked, costs = [], list[float | None]()
        for turn in plan.turns:
            record = turn.record
            earlier = ledger.answered_consult_turns(record.agent, record.asked_model, spend.BASIS_TURNS)
            guess = spend.estimate(earlier, record.prompt_bytes)
            costs.append(guess.cost)
            asked.append(
                {
                    "agent": record.agent,
                    "model": record.asked_model,
                    "why": record.why,
                    "sees": record.sees,
                    "promptBytes": record.prompt_bytes,
                    "estimate": {
                        "costUsd": guess.cost,
                        "seconds": guess.seconds,
                        "outputTokens": guess.output_tokens,
                        "basisTurns": guess.basis_turns,
                    },
                }
            )
        known = [cost for cost in costs if cost is not None]
        spent = None
        if plan.follows:
            spent = ledger.consult_spent(consultation_id=plan.consultation.consultation_id)
        spend.check(plan.rules.spend, len(asked), ledger.consult_spent(since=time.time() - DAY), spent)
        return {
            "state": "dry_run",
            "wouldAsk": asked,
            "estimatedCostUsd": sum(known) if len(known) == len(costs) else None,
            "material": material_shown(plan.turns[0].record.material),
            "secrets": [sighting.place for sighting in plan.seen.secrets[:SHOWN]],
            "suspects": [sighting.place for sighting in plan.seen.suspects[:SHOWN]],
            "masked": list(plan.masked),
            "notAsked": dict(plan.refused),
            "next": "nothing was sent; call again without dryRun",
        }

    async def recover(self, every: float = RECOVERY_SECONDS) -> None:
        """Look for consultations whose process died, at most so often (seconds)."""
        now = time.monotonic()
        if self._recovered_at is None or now - self._recovered_at >= every:
            self._recovered_at = now
            await blocking(recover_consultations, self.house, self._start)


def _limited(turn: ConsultTurnRecord, cost: float | None) -> ConsultTurnRecord:
    request = TurnRequest.model_validate(turn.request).model_copy(update={"max_cost": cost})
    return turn.model_copy(update={"request": request.wire()})
