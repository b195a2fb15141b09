"""Whatever text a worker, a program or a file name holds, it can be stored, read and sent on."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from baton.ledger.store import Ledger
from baton.ledger.text import from_json, storable, storable_text, to_json
from ledger.samples import RUN, a_result, a_run, a_task

ANY_TEXT = st.text(st.characters(categories=None))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
)

ODD = ["\ud800", "a\udcffb", "\0", "\u2028\x85", "\U0001f600", "\ufeff", "\x1b[31m", "\\ud800", '"', ""]


def test_lone_surrogates_become_visible_escapes() -> None:
    assert storable_text("a\ud800b\udcff") == "a\\ud800b\\udcff"


@given(ANY_TEXT)
def test_stored_text_is_utf8_and_text_without_lone_surrogates_is_unchanged(text: str) -> None:
    stored = storable_text(text)
    stored.encode()
    assert storable_text(stored) == stored
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert stored == text


@given(JSON)
def test_json_comes_back_as_its_storable_form(value: JsonValue) -> None:
    text = to_json(value)
    assert from_json(text) == storable(value)
    text.encode()
    json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize("text", ODD)
def test_odd_text_survives_in_every_column(ledger: Ledger, text: str) -> None:
    ledger.create_run(a_run(), [a_task()])
    ledger.update_run(RUN, note=text)
    ledger.update_task(RUN, "one", label=text, result=a_result(summary=text, tail=text))
    ledger.append_event(RUN, text, data={text: [text]})
    stored = storable_text(text)
    assert ledger.run(RUN).note == stored
    task = ledger.task(RUN, "one")
    assert task.label == stored
    assert task.result is not None
    assert task.result.claim is not None
    assert (task.result.claim.summary, task.result.evidence.checks[0].tail) == (stored, stored)
    event = ledger.events(RUN)[-1]
    assert (event.kind, event.data) == (stored, {stored: [stored]})


def test_workspace_whose_name_is_not_utf8_keeps_its_bytes(ledger: Ledger) -> None:
    ledger.create_run(a_run(workspace="/w/caf\udce9"), [])
    assert ledger.run(RUN).workspace == "/w/caf\udce9"
    assert [run.run_id for run in ledger.runs(workspace="/w/caf\udce9")] == [RUN]
