"""What a rollout tells of tokens and settings, also while it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.codex.rollout import find_rollout, read_rollout
from baton.codex.thread import resume_thread
from baton.codex.tokens import Tally
from baton.contract.evidence import Usage
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import context_overflow, say, shell
from codex.workers_bench import LUNA, Bench


@pytest.mark.codex
@pytest.mark.anyio
async def test_a_real_rollout_holds_the_route_the_profile_and_the_tokens(
    test_root: Path, codex_binary: Path, model: ScriptedModel
) -> None:
    bench = Bench(test_root, codex_binary, model.port)
    model.on("WORK", shell("true"), say("one"), say("two"), context_overflow())
    async with await bench.server() as server:
        thread = await bench.thread(server)
        await thread.run_turn("WORK")
        await thread.run_turn("again", effort="low")
    path = find_rollout(bench.home, thread.id)
    assert path is not None
    rollout = read_rollout(path)
    assert [(turn.model, turn.effort) for turn in rollout.turns] == [(LUNA, "high"), (LUNA, "low")]
    assert {turn.profile_id for turn in rollout.turns} == {thread.settings.profile.name}
    entries = rollout.turns[0].permission_profile
    assert entries is not None and str(bench.work / "src") in json.dumps(entries)
    assert rollout.usage.total_tokens == 3 * model.usage.total_tokens
    async with await bench.server() as server:
        resumed = await resume_thread(server, thread.id, bench.settings())
        overflow = await resumed.run_turn("and again")
    assert overflow.usage == Usage()
    again = read_rollout(path)
    assert len(again.turns) == 3
    assert again.usage == rollout.usage


def test_lines_that_are_torn_or_foreign_are_counted_and_passed_over(tmp_path: Path) -> None:
    context = {"type": "turn_context", "payload": {"turn_id": "1", "model": "m", "effort": "low"}}
    quoted = {"type": "response_item", "payload": {"type": "message", "text": '"token_count" "turn_context"'}}
    path = tmp_path / "rollout.jsonl"
    lines = [json.dumps(context), json.dumps(quoted), "[]", '{"type": "turn_context", "payl']
    path.write_text("\n".join(lines))
    rollout = read_rollout(path)
    assert [turn.effort for turn in rollout.turns] == ["low"]
    assert (rollout.skipped, rollout.usage) == (1, Usage())


def test_a_thread_id_is_never_a_pattern_or_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "2026"
    folder.mkdir(parents=True)
    (folder / "rollout-1-0123456789.jsonl").write_text("")
    assert find_rollout(tmp_path, "0123456789") is not None
    assert [find_rollout(tmp_path, name) for name in ("*", "../x", "", "0123*", "01234567")] == [None] * 5


@given(st.lists(st.tuples(*[st.integers(1, 1000)] * 4), min_size=1), st.integers(0, 50), st.booleans())
def test_what_is_spent_is_the_sum_of_the_answers_whatever_came_before(
    answers: list[tuple[int, int, int, int]], before: int, repeated: bool
) -> None:
    names = ("inputTokens", "cachedInputTokens", "outputTokens", "reasoningOutputTokens")
    total = dict.fromkeys(names, before)
    tally = Tally()
    for answer in answers:
        last = dict(zip(names, answer, strict=True))
        total = {name: total[name] + last[name] for name in names}
        for _ in range(2 if repeated else 1):
            tally.add(total, last)
    sums = [sum(column) for column in zip(*answers, strict=True)]
    assert tally.usage() == Usage(
        input_tokens=sums[0],
        cached_input_tokens=sums[1],
        output_tokens=sums[2],
        reasoning_output_tokens=sums[3],
        total_tokens=sums[0] + sums[2],
    )


def test_a_context_that_overflowed_counts_nothing_and_starts_anew() -> None:
    def report(tokens: int) -> dict[str, int]:
        return {
            "input_tokens": tokens,
            "cached_input_tokens": 0,
            "output_tokens": tokens,
            "total_tokens": 2 * tokens,
        }

    tally = Tally()
    tally.add(report(100), report(100))
    made_up = {**report(0), "total_tokens": 258_400}
    tally.add(made_up, made_up)
    tally.add(report(30), report(30))
    assert tally.usage().total_tokens == 260
