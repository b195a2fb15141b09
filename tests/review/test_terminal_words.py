"""What a terminal is told to do next with a review."""

from __future__ import annotations

import re

import click
import pytest

from baton.cli.review import review
from baton.contract.errors import InvalidInput
from baton.contract.review import Confidence, ReviewMode, ReviewState, Severity
from baton.ledger.review_records import ReviewFindingRecord, ReviewRecord
from baton.review.present import next_step
from baton.review.words import TerminalWords
from review.conftest import Desk

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
        told = next_step(record, findings, unread, TerminalWords())
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


def test_an_error_names_what_a_person_types(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk.folder)
    for words, option in (
        (("start", "look", "--diff", "nowhere..HEAD"), "--diff 'nowhere..HEAD': "),
        (("start", "look", "--diff", "HEAD", "--persona", "nobody"), "--persona: no persona 'nobody'"),
        (("finalise", "vabcdefgh", "F1=bogus"), "F1=DISPOSITION: "),
    ):
        with pytest.raises(InvalidInput) as caught:
            review.main(list(words), standalone_mode=False)
        assert caught.value.message.startswith(option), caught.value.message
