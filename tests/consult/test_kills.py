"""SIGKILL at every step of a consultation: it comes to rest, nothing is asked twice, no answer is made up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from baton.consult.service import ConsultService
from baton.contract.base import parse
from baton.contract.consult import ConsultCall, TurnState
from baton.process.tree import processes_with_marker
from consult import killed, scripted
from consult.conftest import Desk, scripted_question
from consult.waiting import DEADLINE, until
from tiers import sampled

WHENS = ("before", "after")

NOT_ASKED_YET = {"before-start"}
"""Killed at these the question is still asked, by the next process."""

ANSWERED = {"after-end", "before-settle", "after-settle", "before-remove", "after-remove"}
"""Killed at these the answer is in the records already."""


SAMPLE = ("ask", "raw", "end")
"""The steps that are looked at also where time is short: around what was paid for."""


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(f"{when}-{name}", marks=() if name in SAMPLE else pytest.mark.long)
        for name in killed.ASKER_STEPS
        for when in WHENS
    ],
)
def test_asking_process_killed(desk: Desk, test_root: Path, step: str) -> None:
    began, done = test_root / "began", test_root / "done"
    house = desk.house
    object.__setattr__(house, "env", {**house.env, "BATON_TEST_STEP": step, "BATON_TEST_DONE": str(done)})
    question = scripted_question({"began": str(began), "answer": "Once.", "cost": 0.5})
    call = parse(ConsultCall, {"question": question, "targets": ["claude"], "waitSeconds": 60}, "consult")
    service = ConsultService(house, scripted.look, killed.start, scripted.adapter_of)
    told = anyio.run(service.consult, call, desk.session)
    name = told["consultationId"]
    assert told["state"] in ("answered", "interrupted"), told
    (turn,) = house.ledger.consult_turns(name)
    until(lambda: processes_with_marker("BATON_RUN", name) == ())
    assert done.exists(), "the step was never reached"
    times = len(began.read_text().split()) if began.exists() else 0
    assert times <= 1
    if step in ANSWERED | NOT_ASKED_YET:
        assert (told["state"], times) == ("answered", 1)
    else:
        assert told["state"] == "interrupted"
    if turn.state is TurnState.ANSWERED:
        assert told["answers"][0]["answer"] == "Once." and turn.cost == 0.5
    if times and step != "before-ask":
        assert "Once." in desk.records("read", id=name, what="raw")["text"]
    assert not (house.state.root / "consult" / name / "1.stdout").exists()
    # Whatever happened, the consultation can be gone on with or asked anew.
    again = desk.consult("And now?", targets=["claude"])
    assert again["state"] == "answered"


@pytest.mark.parametrize(
    "step", sampled([f"{when}-{name}" for name in reversed(killed.SESSION_STEPS) for when in WHENS], 4)
)
def test_session_killed(desk: Desk, test_root: Path, step: str) -> None:
    began, done = test_root / "began", test_root / "done"
    tests = str(Path(__file__).parents[1])
    paths = [tests, *filter(None, sys.path)]
    env = {
        **os.environ,
        "BATON_TEST_STEP": step,
        "BATON_TEST_DONE": str(done),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    question = scripted_question({"began": str(began), "answer": "Once."})
    argv = [sys.executable, "-B", "-m", "consult.killed", "consult", question, str(desk.folder)]
    ended = subprocess.run(argv, env=env, timeout=DEADLINE, check=False)
    assert (ended.returncode, done.exists()) == (-9, True)
    found = desk.house.ledger.consultations()
    if step != "after-start":
        # Not committed: as if nobody had asked.
        assert found == [] and not began.exists()
        return
    (consultation,) = found
    told = desk.records("wait", id=consultation.consultation_id)
    assert (told["state"], told["answers"][0]["answer"]) == ("answered", "Once.")
    assert len(began.read_text().split()) == 1
