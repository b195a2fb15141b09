"""Nobody asks themselves: what is provably another model, and what is not."""

from __future__ import annotations

import pytest

from baton.consult.identity import Host, Identity, not_somebody_else, parse_model, same_agent


@pytest.mark.parametrize(
    ("agent", "host", "different"),
    [
        ("gpt-5.6-sol", "gpt-6.2-sol", True),
        ("gpt-5.6-luna", "gpt-5.6-sol", True),
        ("claude-sonnet-5", "claude-opus-5", True),
        ("claude-opus-5-5", "claude-opus-5", True),
        ("gpt-5.6-sol", "gpt-5.6-sol", False),
        ("GPT-5.6-Sol", "gpt-5.6-sol", False),
        ("openai/gpt-5.6-sol", "gpt-5.6-sol", False),
        ("gpt-5.6-sol-high", "gpt-5.6-sol", False),
        ("gpt-5.6-sol[1m]", "gpt-5.6-sol", False),
        ("gpt-5.6", "gpt-5.6-sol", False),
        ("opus", "claude-opus-5", False),
        ("claude-opus", "claude-opus-5", False),
        ("sonnet", "claude-opus-5", False),
        ("claude-opus-5-20260101", "claude-opus-5", False),
        ("claude-opus-5-2026-01-01", "claude-opus-5", False),
        ("opus-5", "claude-opus-5", False),
        ("claude-5-opus", "claude-opus-5", False),
        ("claude-opus-5.0", "claude-opus-5", False),
        ("claude-opus-5-latest", "claude-opus-5", False),
        ("claude-opus-5", "opus", False),
        ("o3", "o4-mini", True),
    ],
)
def test_only_a_provably_different_model_of_the_same_runtime_is_somebody_else(
    agent: str, host: str, different: bool
) -> None:
    reason = not_somebody_else(Identity("codex", agent), Host("codex", (host,)))
    assert (reason is None) is different
    assert same_agent(Identity("codex", agent), Identity("codex", host)) is not different


def test_the_same_model_in_another_runtime_is_somebody_else() -> None:
    assert (
        not_somebody_else(Identity("opencode", "openai/gpt-5.6-sol"), Host("codex", ("gpt-5.6-sol",))) is None
    )


def test_unknown_model_of_the_host_excludes_its_whole_runtime() -> None:
    reason = not_somebody_else(Identity("codex", "gpt-5.6-sol"), Host("codex"))
    assert reason is not None and "consult.host_model" in reason


def test_default_model_on_the_hosts_runtime_proves_nothing() -> None:
    reason = not_somebody_else(Identity("codex", None), Host("codex", ("gpt-6.2-sol",)))
    assert reason is not None and "version" in reason


def test_every_known_name_of_the_hosts_model_counts() -> None:
    host = Host("codex", ("gpt-6.2-sol", "gpt-5.6-sol"))
    for own in host.models:
        assert not_somebody_else(Identity("codex", own), host) is not None
    assert not_somebody_else(Identity("codex", "gpt-6-astra"), host) is None


def test_two_agents_on_their_runtimes_default_are_one() -> None:
    assert same_agent(Identity("claude", None), Identity("claude", None))
    assert not same_agent(Identity("claude", None), Identity("codex", None))


def test_a_snapshot_date_is_no_version() -> None:
    assert parse_model("claude-opus-20260101").version == ()
    assert parse_model("gpt-4o-2024-05-13").version == (4,)
