"""Which consultations have had their time, for `baton gc`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from baton.consult.content import remove_held
from baton.consult.launch import recover_consultations
from baton.consult.records import delete
from baton.consult.sessions import sweep
from baton.contract.errors import BatonError, NotFound
from baton.engine.house import House
from baton.ledger.consult_records import ConsultationRecord
from baton.ledger.consultations import DAY
from baton.policy.load import load_policy


@dataclass
class Forgotten:
    """What was forgotten, or with a dry run would be."""

    consultations: list[str] = field(default_factory=list)
    freed_bytes: int = 0
    faults: list[str] = field(default_factory=list)
    """What could not be removed, each in one line."""


def forget_old(house: House, *, dry_run: bool = False, at: float | None = None) -> Forgotten:
    """Forget consultations at rest for longer than the person's `consult.keep_days`.

    Reviews at rest for as long go as well. Parts of other work stay as long as that is there. Text that is
    only held goes when its hour is over, as ever.
    """
    done = Forgotten()
    moment = time.time() if at is None else at
    seconds = load_policy(house.codex_home, None).consult.keep_days * DAY
    before = moment - seconds
    if not dry_run:
        recover_consultations(house)
        remove_held(house, moment)
        # What programs keep of conversations that no record knows any more.
        sweep(house, seconds)
        # A plan can be run for a day.
        house.ledger.expire_plans(moment - DAY)
        house.ledger.delete_reviews(before)
    for consultation in house.ledger.consultations(-1):
        if consultation.ended_at is None or _is_needed(house, consultation):
            continue
        if consultation.ended_at >= before:
            continue
        try:
            if not dry_run:
                done.freed_bytes += delete(house, consultation.consultation_id)
            done.consultations.append(consultation.consultation_id)
        except (BatonError, OSError) as error:
            done.faults.append(f"{consultation.consultation_id}: {error}")
    return done


def _is_needed(house: House, consultation: ConsultationRecord) -> bool:
    """Whether it is a part of other work that is still there."""
    if consultation.kind == "review" and consultation.parent is not None:
        try:
            house.ledger.review(consultation.parent)
        except NotFound:
            return False
        return True
    return consultation.parent is not None
