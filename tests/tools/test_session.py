"""The session is read from what Codex sends, and nothing that it sends can break a call."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from baton.contract.session import Session
from baton.tools.session import read_session

SENT = {
    "threadId": "t1",
    "x-codex-turn-metadata": {
        "session_id": "s",
        "thread_id": "t1",
        "parent_thread_id": "t0",
        "turn_id": "u1",
        "model": "gpt-5.6-sol",
        "reasoning_effort": "high",
    },
    "codex/sandbox-state-meta": {
        "sandboxCwd": "file:///home/a%20person/caf%C3%A9",
        "permissionProfile": {"type": "managed"},
    },
    "codex/sandbox-launcher": {"codexExecutable": "/opt/codex"},
}


def test_everything_that_codex_sends_is_read() -> None:
    assert read_session(SENT) == Session(
        cwd="/home/a person/café",
        thread_id="t1",
        parent_thread_id="t0",
        turn_id="u1",
        model="gpt-5.6-sol",
        effort="high",
        profile=dict(SENT["codex/sandbox-state-meta"]),  # type: ignore[call-overload]
        launcher="/opt/codex",
    )


def test_a_client_that_sends_nothing_has_an_empty_session() -> None:
    assert read_session(None) == read_session({}) == Session()


def test_turn_metadata_as_text_is_read_too() -> None:
    assert read_session({"x-codex-turn-metadata": '{"thread_id":"t","model":"m"}'}).model == "m"


def test_folder_may_be_a_plain_path_but_not_a_relative_one() -> None:
    assert read_session({"codex/sandbox-state-meta": {"sandboxCwd": "/a%20b"}}).cwd == "/a%20b"
    assert read_session({"codex/sandbox-state-meta": {"sandboxCwd": "a"}}).cwd is None


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from([*SENT]), JSON | st.dictionaries(st.sampled_from(["sandboxCwd"]), JSON))
)
def test_no_form_of_the_metadata_breaks_a_call(meta: dict[str, object]) -> None:
    read_session(meta)
