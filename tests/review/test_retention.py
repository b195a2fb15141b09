"""Old reviews go with what was asked for them; while one is there, its consultation stays."""

from __future__ import annotations

import time

import pytest

from baton.consult.retention import forget_old
from baton.contract.errors import NotFound
from review.conftest import Desk

DAY = 86_400.0


def test_old_review_goes_with_its_consultation(desk: Desk) -> None:
    done = desk.reviewed()
    name = done["reviewId"]
    desk.review("finalise", name)
    forget_old(desk.house, at=time.time() + 30 * DAY)
    assert desk.review("status", name)["state"] == "finalised"
    forgotten = forget_old(desk.house, at=time.time() + 91 * DAY)
    assert forgotten.consultations == [done["consultationId"]]
    with pytest.raises(NotFound):
        desk.house.ledger.review(name)


def test_plan_that_nobody_ran_expires_and_goes(desk: Desk) -> None:
    name = desk.plan()["reviewId"]
    forget_old(desk.house, at=time.time() + DAY / 2)
    assert desk.review("status", name)["state"] == "planned"
    forget_old(desk.house, at=time.time() + 2 * DAY)
    assert desk.review("status", name)["state"] == "expired"
    forget_old(desk.house, at=time.time() + 91 * DAY)
    with pytest.raises(NotFound):
        desk.house.ledger.review(name)


def test_consultation_stays_while_its_review_was_touched_since(desk: Desk) -> None:
    done = desk.reviewed()
    with desk.house.ledger.db.transaction() as db:
        db.execute("UPDATE consultations SET ended_at = ended_at - ?", [200 * DAY])
    assert forget_old(desk.house).consultations == []
    assert desk.review("status", done["reviewId"], what="answer")["text"]
