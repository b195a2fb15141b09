"""What all desks from which agents are asked have in common: who is asked, refusals, and an end in order."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from baton.contract.errors import BatonError
from baton.engine.house import House
from baton.ledger.locks import is_held

DEADLINE = 60.0

POLICY = """
[consult]
enabled = true
[consult.agents.codex]
model = "gpt-5.6-sol"
[consult.agents.opencode]
model = "other/model-3"
[consult.agents.copilot]
enabled = false
"""


def until(true: Callable[[], bool]) -> None:
    """Wait for something that must come."""
    end = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < end, "it did not come in time"
        time.sleep(0.01)


def refused(house: House, call: Callable[[], object]) -> BatonError:
    """The refusal of a call: one line, and nobody was asked."""
    before = len(house.ledger.consultations(-1))
    with pytest.raises(BatonError) as caught:
        call()
    assert len(caught.value.message.splitlines()) == 1
    assert len(house.ledger.consultations(-1)) == before
    return caught.value


def end_all(house: House) -> None:
    """No process of a test outlives it."""
    for consultation in house.ledger.consultations(-1, open_only=True):
        house.ledger.ask_to_cancel(consultation.consultation_id)
    for lock in house.state.locks.glob("consultation-*.lock"):
        until(lambda lock=lock: not is_held(lock))  # type: ignore[misc]
