"""A review survives the death of any process at any step: nothing is lost, and nobody is asked twice."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from baton.process.tree import processes_with_marker
from consult.waiting import until
from review.conftest import FINDING, Desk
from review.killing import killed

killed_after = partial(killed, "review.killed")


@pytest.mark.long
def test_session_killed_at_every_step_of_a_review_is_gone_on_with(desk: Desk) -> None:
    # The answer in a wrong form first, so that the repair is among the steps.
    desk.script.says("codex", {"text": "No."}, {"findings": [FINDING]})
    commits, steps = 0, 0
    while killed_after(commits := commits + 1, desk.folder):
        steps += 1
        assert steps < 60
        for review in desk.house.ledger.reviews(-1):
            if review.state == "finalised":
                continue
            shown = desk.review("status", review.review_id)
            if shown["state"] == "planned":
                # Its token went with the process that made it.
                assert desk.house.ledger.consultations(-1, parent=review.review_id) == []
                continue
            assert shown["state"] == "awaiting_synthesis", shown
            assert [one["id"] for one in shown["findings"]] == ["F1"], shown
            (consultation,) = desk.house.ledger.consultations(-1, parent=review.review_id)
            assert len(desk.house.ledger.consult_turns(consultation.consultation_id)) == 2
            done = desk.review(
                "finalise", review.review_id, dispositions=[{"finding": "F1", "disposition": "fixed"}]
            )
            assert done["state"] == "finalised"
        for path in desk.script.root.glob("codex.*"):
            if path.suffix != ".json":
                path.unlink()
    assert steps >= 5


def test_asking_process_that_is_killed_leaves_a_review_that_can_be_retried(desk: Desk) -> None:
    desk.script.says("codex", {"hang": 1}, {"findings": [FINDING]})
    plan = desk.plan()
    running = desk.run(plan, waitSeconds=0)
    until(lambda: len(desk.script.prompts("codex")) == 1)
    askers = processes_with_marker("BATON_RUN", running["consultationId"])
    os.kill(min(askers, key=lambda process: process.start_time).pid, signal.SIGKILL)
    failed = desk.review("status", plan["reviewId"])
    assert failed["state"] == "failed"
    assert len(desk.script.prompts("codex")) == 1
    assert processes_with_marker("BATON_RUN", running["consultationId"]) == ()
    assert desk.review("retry", plan["reviewId"])["state"] == "awaiting_synthesis"


def test_review_whose_consultation_was_deleted_has_a_way_on(desk: Desk) -> None:
    plan = desk.plan()
    running = desk.run(plan, waitSeconds=0)
    name = running["consultationId"]
    until(lambda: desk.house.ledger.consultation(name).state.at_rest)
    desk.house.ledger.delete_consultation(name, desk.house.artifacts)
    left = desk.review("status", plan["reviewId"])
    assert left["state"] in ("failed", "awaiting_synthesis")
    assert left["next"]


def test_two_sessions_that_wait_for_the_same_review_repair_it_once(desk: Desk) -> None:
    desk.script.says("codex", {"text": "No."}, {"findings": [FINDING]})
    plan = desk.plan()
    running = desk.run(plan, waitSeconds=0)
    until(lambda: desk.house.ledger.consultation(running["consultationId"]).state.at_rest)
    with ThreadPoolExecutor(3) as pool:
        shown = list(pool.map(lambda _: desk.review("status", plan["reviewId"]), range(3)))
    assert [[one["id"] for one in told["findings"]] for told in shown] == [["F1"]] * 3
    assert len(desk.script.prompts("codex")) == 2
