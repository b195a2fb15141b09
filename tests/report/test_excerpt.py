"""Long texts in part."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.ledger.artifacts import Artifacts
from baton.ledger.state import StateFolder
from baton.report.excerpt import decoded, excerpt


@pytest.fixture
def artifacts(test_root: Path) -> Artifacts:
    return Artifacts(StateFolder.find({"BATON_STATE": str(test_root / "state"), "HOME": str(test_root)}))


def test_a_short_text_is_whole(artifacts: Artifacts) -> None:
    shown = excerpt(artifacts, artifacts.put_bytes("für\n".encode()))
    assert (shown.head, shown.tail, shown.left_out, shown.size) == ("für\n", "", 0, 5)


def test_of_a_long_text_beginning_and_end_are_shown_and_the_rest_is_counted(artifacts: Artifacts) -> None:
    data = b"".join(b"line %06d\n" % number for number in range(100_000))
    shown = excerpt(artifacts, artifacts.put_bytes(data), head=1_000, tail=1_000)
    assert shown.head.startswith("line 000000\n")
    assert shown.tail.startswith("line 0999")
    assert shown.tail.endswith("line 099999\n")
    assert len(shown.head) + len(shown.tail) + shown.left_out == len(data) == shown.size


def test_a_text_that_is_gone_or_damaged_says_so(artifacts: Artifacts, test_root: Path) -> None:
    assert "no artifact" in (excerpt(artifacts, "0" * 64).missing or "")
    name = artifacts.put_bytes(b"what was kept")
    (test_root / "state" / "artifacts" / name[:2] / name).write_bytes(b"something else")
    assert "damaged" in (excerpt(Artifacts(StateFolder.find()), name).missing or "")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.data())
def test_no_character_is_cut_in_two(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    cut = data.draw(st.integers(0, len(raw)))
    begin, end = decoded(raw[:cut], cut_end=True), decoded(raw[cut:], cut_begin=True)
    assert text.startswith(begin)
    assert text.endswith(end)
    assert len(text) - len(begin) - len(end) <= 1
