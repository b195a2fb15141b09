"""What a terminal is told to do next with a review."""

from __future__ import annotations

import re

import click
import pytest

from baton.cli.review import review, typed
from baton.contract.review import Confidence, ReviewMode, ReviewState, Severity
from baton.ledger.review_records import ReviewFindingRecord, ReviewRecord
from baton.review.present import next_step

NAMED = re.compile(r"`baton review ([^`]+)`")


@pytest.mark.parametrize("state", list(ReviewState))
@pytest.mark.parametrize("unread", [[], ["codex"]])
def test_what_a_terminal_is_told_after_a_review_is_a_command_that_there_is(
    state: ReviewState, unread: list[str]
) -> None:
    record = ReviewRecord(
        review_id="vabc",
        mode=ReviewMode.STANDARD,
        goal="g",
        approval="a",
        state=state,
        consultation_id="cabc",
    )
    finding = ReviewFindingRecord(
        review_id="vabc",
        number=1,
        source="codex",
        severity=Severity.IMPORTANT,
        title="t",
        confidence=Confidence.HIGH,
    )
    for findings in ([], [finding]):
        told = typed(next_step(record, findings, unread), record.review_id)
        assert not re.search(r"(?<!baton )\breview (status|retry|recheck)|what=|records cancel", told), told
        if state is ReviewState.AWAITING_SYNTHESIS:
            assert "`baton review finalise vabc`" in told
            assert ("one for each of F1" in told) is bool(findings)
            assert ("`baton review retry vabc`" in told) is bool(unread)
        for command in NAMED.findall(told):
            name, *arguments = command.split()
            known = review.get_command(click.Context(review), name)
            assert known is not None, told
            known.make_context(name, arguments)
