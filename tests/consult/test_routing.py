"""Whom a call asks, and what it says when it asks nobody."""

from __future__ import annotations

import pytest

from baton.consult.identity import Host
from baton.consult.routing import Candidate, Wanted, choose
from baton.contract.consult import Side, SourceMode
from baton.contract.errors import InvalidInput, NoAgent
from baton.policy.consult_rules import ConsultAgent

HOST = Host("codex", ("gpt-6.2-sol",))


def _agent(name: str, score: int = 0, **changes: object) -> Candidate:
    missing = changes.pop("missing", None)
    web = bool(changes.pop("web", False))
    known = {
        "enabled": True,
        "runtime": "claude",
        "command": "",
        "model": f"{name}-model-1",
        "effort": "",
        "web_search": False,
        "priority": 10,
        "scores": {"coding": score} if score else {},
        "settings": {},
    }
    made = ConsultAgent.model_validate({**known, **changes})
    return Candidate(name, made, None if missing is None else str(missing), web)


def _ask(*agents: Candidate, **wanted: object) -> list[str]:
    call = Wanted(**{"capability": "coding", **wanted})  # type: ignore[arg-type]
    return [chosen.candidate.id for chosen in choose({one.id: one for one in agents}, HOST, call)]


def test_highest_score_is_asked() -> None:
    assert _ask(_agent("a", 80), _agent("b", 90), _agent("c", 85)) == ["b"]


def test_equal_scores_go_by_priority_then_name() -> None:
    assert _ask(_agent("z", 90, priority=5), _agent("a", 90)) == ["z"]
    assert _ask(_agent("z", 90), _agent("a", 90)) == ["a"]


def test_within_the_margin_priority_decides() -> None:
    cheap, dear = _agent("cheap", 92, priority=1), _agent("dear", 95)
    assert _ask(cheap, dear) == ["dear"]
    assert _ask(cheap, dear, margin=5) == ["cheap"]
    assert _ask(cheap, dear, margin=2) == ["dear"]


def test_several_are_asked_best_first() -> None:
    agents = [_agent("a", 80), _agent("b", 90), _agent("c", 85)]
    assert _ask(*agents, count=2) == ["b", "c"]
    assert _ask(*agents, targets=("a", "c")) == ["a", "c"]
    assert _ask(*agents, targets=("a", "c"), count=1) == ["c"]


def test_margin_counts_from_the_best_that_is_left() -> None:
    agents = [_agent("a", 95), _agent("b", 90), _agent("c", 86, priority=1)]
    assert _ask(*agents, count=3, margin=5) == ["a", "c", "b"]


def test_two_names_for_one_model_are_one_agent() -> None:
    one, twin = _agent("one", 90, model="opus-5"), _agent("twin", 80, model="claude-opus-5")
    assert _ask(one, twin, _agent("c", 70), count=2) == ["one", "c"]
    with pytest.raises(NoAgent, match="twin: it cannot be told apart from one"):
        _ask(one, twin, count=2)


def test_both_sides_are_two_agents_or_one_twice() -> None:
    call = Wanted("coding", both_sides=True)
    both = choose({"a": _agent("a", 90), "b": _agent("b", 80)}, HOST, call)
    assert [(one.candidate.id, one.side) for one in both] == [("a", Side.FOR), ("b", Side.AGAINST)]
    alone = choose({"a": _agent("a", 90)}, HOST, call)
    assert [(one.candidate.id, one.side) for one in alone] == [("a", Side.FOR), ("a", Side.AGAINST)]
    with pytest.raises(InvalidInput, match="bothSides"):
        _ask(_agent("a", 90), both_sides=True, count=3)


def test_refusal_says_why_of_every_agent() -> None:
    agents = [
        _agent("off", 90, enabled=False),
        _agent("own", 90, runtime="codex", model="gpt-6.2-sol"),
        _agent("gone", 90, missing="claude is not installed"),
        _agent("other"),
    ]
    with pytest.raises(NoAgent) as caught:
        _ask(*agents)
    for words in (
        "off: it is switched off",
        "own: it runs on codex like the session",
        "gone: claude is not installed",
        "other: it has no score for coding",
    ):
        assert words in caught.value.message


def test_score_of_zero_is_no_score_but_a_name_needs_none() -> None:
    with pytest.raises(NoAgent):
        _ask(_agent("a", scores={"coding": 0}))
    assert _ask(_agent("a"), targets=("a",)) == ["a"]


def test_named_agent_that_may_not_be_asked_is_never_replaced() -> None:
    with pytest.raises(NoAgent, match="own is not asked: it runs on codex"):
        _ask(_agent("own", 90, runtime="codex", model="gpt-6.2-sol"), _agent("b", 80), targets=("own",))


def test_web_needs_permission_and_a_program_that_can() -> None:
    allowed = _agent("a", 90, web_search=True, web=True)
    assert _ask(allowed, source_mode=SourceMode.WEB) == ["a"]
    with pytest.raises(NoAgent, match="web_search"):
        _ask(_agent("a", 90, web=True), source_mode=SourceMode.WEB)
    with pytest.raises(NoAgent, match="cannot search"):
        _ask(_agent("a", 90, web_search=True), source_mode=SourceMode.WEB)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"targets": ("aa",)}, "did you mean 'a'"),
        ({"targets": ("a", "a")}, "twice"),
        ({"targets": ("a",), "count": 2}, "count"),
        ({"count": 6}, "consult.max_agents"),
    ],
)
def test_impossible_call_is_refused(wanted: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        _ask(_agent("a", 90), **wanted)
