"""Numbers of things and names that are none, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

import baton
from baton.contract.nearest import did_you_mean
from baton.contract.tree import Capture
from baton.contract.wording import many, reasons_text
from baton.engine.attempt import _capture_notices


@pytest.mark.parametrize(
    ("number", "words", "told"),
    [
        (1, ("task",), "1 task"),
        (0, ("task",), "0 tasks"),
        (12_300, ("task",), "12,300 tasks"),
        (1, ("entry is", "entries are"), "1 entry is"),
        (2, ("entry is", "entries are"), "2 entries are"),
    ],
)
def test_number_and_word_agree(number: int, words: tuple[str, ...], told: str) -> None:
    assert many(number, *words) == told


def test_one_path_that_was_ignored_is_one_path() -> None:
    capture = Capture("c", "t", (), ignored=(b"a",), unsupported=(b"b", b"c"))
    assert _capture_notices(capture) == [
        "1 ignored path is kept apart and never applied",
        "2 paths cannot be kept by git",
    ]


def test_no_message_makes_its_own_plural() -> None:
    own = [
        file.name
        for file in Path(str(baton.__file__)).parent.rglob("*.py")
        if file.name != "wording.py"
        if any(sign in file.read_text() for sign in ("{'s' if", "else 's'}", "(s) ", "(es) "))
    ]
    assert own == []


def test_name_that_is_none_tells_the_nearest_or_what_there_is() -> None:
    assert did_you_mean("luna-workr", ["terra", "luna-worker"]) == "did you mean 'luna-worker'?"
    assert did_you_mean("zzz", ["terra", "sol"]) == "known: terra, sol"
    assert did_you_mean("zzz", []) == "known: none"
    assert did_you_mean("zzz", ["terra"], "`baton models` lists them") == "`baton models` lists them"


def test_reasons_fit_in_a_line_the_longest_cut_first_and_the_last_counted() -> None:
    assert reasons_text({"a": "off", "b": "gone"}) == "a: off; b: gone"
    long = "it cannot be told apart from the one that wrote the change " * 5
    told = reasons_text({"codex": long, "claude": "claude is not on PATH", "opencode": long})
    first, whole, last = told.split("; ")
    assert whole == "claude: claude is not on PATH"
    assert first.startswith("codex: it cannot be told apart from") and first.endswith(" …")
    assert last.endswith(" …") and 200 < len(told) <= 240
    told = reasons_text({f"agent{number}": long for number in range(30)})
    assert len(told) <= 240 and told.endswith(f"; and {30 - told.count('agent')} more")
