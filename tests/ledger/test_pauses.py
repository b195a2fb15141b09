"""Pauses of models: the longest holds, for everybody, until it is over."""

from __future__ import annotations

import time

from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger


def test_longest_pause_of_a_model_holds_for_every_process(state: StateFolder) -> None:
    end = time.time() + 600
    with Ledger.open(state) as one, Ledger.open(state) as other:
        one.pause_model("a", end, "first")
        one.pause_model("a", end - 300, "shorter")
        found = other.model_pause("a")
        assert found is not None and (found.until, found.why) == (end, "first")
        other.pause_model("a", end + 300, "longer")
        found = one.model_pause("a")
        assert found is not None and (found.until, found.why) == (end + 300, "longer")
        assert one.model_pause("b") is None


def test_pause_that_is_over_is_none_and_leaves_nothing(state: StateFolder) -> None:
    with Ledger.open(state) as ledger:
        ledger.pause_model("a", time.time() - 1, "past")
        assert ledger.model_pause("a") is None
        ledger.pause_model("b", time.time() + 600, "now")
        assert [tuple(row) for row in ledger.db.read("SELECT model FROM pauses")] == [("b",)]


def test_all_that_are_not_over_are_told(state: StateFolder) -> None:
    end = time.time() + 600
    with Ledger.open(state) as ledger:
        assert ledger.model_pauses() == []
        ledger.pause_model("b", end, "now")
        ledger.pause_model("a", end + 1, "now")
        ledger.pause_model("c", time.time() - 1, "past")
        assert [(one.model, one.until) for one in ledger.model_pauses()] == [("a", end + 1), ("b", end)]
