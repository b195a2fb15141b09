"""The failing part of an output comes first, then its end, whatever lies between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.verify.failing import CUT, failing_part

NOISE = "\n".join(f"doing step {number}" for number in range(2000))

SAMPLES = {
    "pytest": "E       AssertionError: assert 7 == 8",
    "unittest": "FAIL: test_sum (tests.Sums.test_sum)",
    "traceback": "Traceback (most recent call last):",
    "cargo": "error[E0308]: mismatched types",
    "panic": "thread 'tests::sum' panicked at src/lib.rs:9:5:",
    "go": "--- FAIL: TestSum (0.00s)",
    "jest": "  ● sums › adds two numbers",
    "mocha": "  ✖ adds two numbers",
    "tap": "not ok 3 - adds two numbers",
    "maven": "[ERROR] Tests run: 3, Failures: 1, Errors: 0",
    "gcc": "main.c:3:9: error: expected ';' before 'return'",
    "tsc": "src/a.ts:3:9 - error TS2322: Type 'string' is not assignable",
    "linker": "main.o: undefined reference to `sum'",
    "make": "make: *** [Makefile:3: test] Error 1",
    "npm": "npm ERR! code ELIFECYCLE",
    "prose": "something went wrong: the request was refused",
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_failure_in_the_middle_of_a_long_output_is_shown(kind: str) -> None:
    shown = failing_part(f"{NOISE}\n{SAMPLES[kind]}\n  with this detail\n{NOISE}\nthe end")
    assert SAMPLES[kind] in shown
    assert "with this detail" in shown
    assert shown.endswith("the end")
    assert CUT in shown
    assert len(shown) <= 2000


def test_short_output_is_shown_whole() -> None:
    assert failing_part("one\ntwo\n") == "one\ntwo"


def test_output_without_a_failure_shows_its_end() -> None:
    shown = failing_part(f"{NOISE}\n0 failed, no errors, errors: 0\nthe end")
    assert shown.endswith("the end")
    assert shown.startswith(CUT)


def test_strong_sign_of_failure_wins_over_an_earlier_weak_one() -> None:
    shown = failing_part(f"testing the error page\n{NOISE}\nE   assert 1 == 2\n{NOISE}")
    assert "assert 1 == 2" in shown
    assert "error page" not in shown


def test_colours_and_overwritten_progress_are_left_out() -> None:
    assert failing_part("\x1b[31merror:\x1b[0m no\n 10%\r 50%\r100% done\r\n\x07") == "error: no\n100% done"


def test_failure_at_the_very_end_is_shown_once() -> None:
    shown = failing_part(f"{NOISE}\nerror: last words")
    assert shown.count("last words") == 1


@given(st.text(max_size=3000), st.integers(min_value=100, max_value=400))
def test_never_longer_than_the_limit(text: str, limit: int) -> None:
    assert len(failing_part(text, limit)) <= limit


@given(st.integers(1, 60), st.integers(1, 60), st.integers(100, 500))
def test_long_lines_never_break_the_limit(before: int, after: int, limit: int) -> None:
    text = "\n".join(["x" * 97] * before + ["error: " + "y" * 300] + ["z" * 203] * after)
    assert len(failing_part(text, limit)) <= limit
