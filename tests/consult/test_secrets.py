"""Credentials are found and masked in prose, and nothing else is ever changed."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from _pytest.mark import ParameterSet
from hypothesis import given
from hypothesis import strategies as st

from baton.consult.secret_values import entropy
from baton.consult.secrets import mask, scan
from consult.secret_corpus import false_cases, true_cases
from consult.secret_maker import HEX, WORD, FalseCase, Maker, TrueCase, pem

KNOWN = pytest.mark.xfail(strict=True, reason="told wrongly so far; it counts in the figures")


def each(cases: Sequence[TrueCase | FalseCase]) -> list[ParameterSet]:
    """Every case as a test of its own."""
    known = [case.known_miss if isinstance(case, TrueCase) else case.known_mistake for case in cases]
    given = zip(cases, known, strict=True)
    return [pytest.param(case, id=case.name, marks=[KNOWN] if wrong else []) for case, wrong in given]


@pytest.mark.parametrize("case", each(true_cases()))
def test_credential_is_found_where_it_stands_and_masked(case: TrueCase) -> None:
    hits = scan(case.text).hits
    place = case.text.index(case.secret)
    assert any(hit.start <= place < hit.end or place <= hit.start < place + len(case.secret) for hit in hits)
    assert case.secret not in mask(case.text).text


@pytest.mark.parametrize("case", each(false_cases()))
def test_text_without_a_credential_is_left_as_it_is(case: FalseCase) -> None:
    assert scan(case.text).hits == ()
    assert mask(case.text).text == case.text


def test_corpus_is_large_enough_and_differs_with_its_seed() -> None:
    assert len(true_cases()) >= 60
    assert len(false_cases()) >= 60
    assert {case.secret for case in true_cases(1)}.isdisjoint(case.secret for case in true_cases(2))


def test_other_made_up_values_are_found_as_well() -> None:
    for seed in (101, 102, 103):
        trues, falses = true_cases(seed), false_cases(seed)
        found = sum(case.secret not in mask(case.text).text for case in trues)
        wrong = sum(bool(scan(case.text).hits) for case in falses)
        assert found / len(trues) >= 0.95
        assert found / (found + wrong) >= 0.95


def test_everything_around_what_is_masked_stays_byte_for_byte() -> None:
    secret = "ghp_" + Maker(1).of(WORD, 36)
    before, after = "püsh with\r\n\ttoken ", " — then\n\n  x = f(y)\n"
    assert mask(before + secret + after).text == f"{before}[masked: GitHub token]{after}"


def test_masked_text_is_clean_and_masking_again_changes_nothing() -> None:
    for case in true_cases():
        once = mask(case.text).text
        assert scan(once).hits == ()
        assert mask(once).text == once


@given(st.text(max_size=300))
def test_text_is_changed_only_where_something_was_found(text: str) -> None:
    masked = mask(text)
    if not masked.hits:
        assert masked.text == text


@given(st.text(alphabet="abc= \n:'\"password_tokenkey-", max_size=200))
def test_words_about_credentials_alone_are_no_credentials(text: str) -> None:
    for hit in scan(text).hits:
        value = text[hit.start : hit.end]
        # Whatever is found has the variety of one: it is no single word.
        assert entropy(value) > 2.0 or any(not character.isalnum() for character in value)


def test_line_of_each_credential_is_told() -> None:
    secret = "xoxb-" + Maker(2).of("0123456789", 12) + "-" + Maker(3).of(WORD, 24)
    text = f"one\ntwo\nslack: {secret}\nfour\n"
    (hit,) = scan(text).hits
    assert hit.line == 3
    assert text[hit.start : hit.end] == secret


def test_random_text_without_a_name_is_a_suspect_and_no_verdict() -> None:
    word = Maker(4).of(WORD, 40)
    found = scan(f"one\nsee {word}\n")
    assert found.hits == ()
    assert [suspect.line for suspect in found.suspects] == [2]
    assert mask(f"see {word}").text == f"see {word}"


@pytest.mark.parametrize(
    "text",
    [
        "commit " + Maker(5).of(HEX, 40),
        "550e8400-e29b-41d4-a716-446655440000",
        "sha512-" + Maker(6).of(WORD, 86) + "==",
        "a_long_snake_case_name_with_24_parts_in_it",
        "some-kebab-case-identifier-2024-v2-final",
        "TokenVerificationMiddlewareConfigurationV2",
        "https://acme.test/a/very/long/path/to/File2Name3",
    ],
)
def test_what_is_random_by_nature_is_no_suspect(text: str) -> None:
    assert scan(text).suspects == ()


def test_line_with_a_hit_is_not_a_suspect_too() -> None:
    make = Maker(7)
    text = f'api_key = "{make.of(WORD, 32)}"  # {make.of(WORD, 40)}'
    found = scan(text)
    assert len(found.hits) == 1
    assert found.suspects == ()


def test_private_key_is_masked_as_a_whole_also_without_its_end() -> None:
    body = Maker(8).key_lines(4)
    whole = pem("PRIVATE KEY", body)
    assert mask(f"a\n{whole}\nb").text == "a\n[masked: private key]\nb"
    cut = whole.partition("-----END")[0]
    assert body.splitlines()[-1] not in mask(f"a\n{cut}").text


@pytest.mark.parametrize(
    "text",
    [
        "a" * 400_000,
        "a1" * 200_000,
        "password_" * 40_000,
        "password='" * 30_000,
        "-----BEGIN PRIVATE KEY-----" * 10_000,
        "a://" * 80_000,
        "eyJabcdefghijk." * 20_000,
        "curl " * 60_000,
        "password" + " " * 300_000,
    ],
    ids=lambda text: text[:12],
)
def test_no_text_makes_looking_slow(text: str) -> None:
    """Linear: doubling the text at most about doubles the time. Quadratic searches quadruple it."""

    def took(given: str) -> float:
        began = time.process_time()
        scan(given)
        return time.process_time() - began

    scan(text[:1000])
    half = min(took(text[: len(text) // 2]) for _ in range(2))
    whole = min(took(text) for _ in range(2))
    assert whole < 3.2 * half + 0.2
