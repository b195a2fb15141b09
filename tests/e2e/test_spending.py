"""What was spent: figures of workers and of a real supervising session, equal to what the model reported."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from baton.contract.session import Session
from baton.simulate.script import Fail, say, shell, stall
from baton.simulate.workers import report, write
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

PRICES = """
[prices."gpt-6-luna"]
input = 2
cached_input = 0.5
output = 10
"""


@pytest.fixture
def call(workspace: Callable[..., Workspace]) -> dict[str, Any]:
    folder = workspace({"a.txt": "seed\n"})
    return {"workspace": str(folder.path), "allowedFiles": ["a.txt"], "waitSeconds": 100}


def _tokens(sim: Sim, answers: int) -> dict[str, int]:
    one = sim.model.usage
    return {
        "inputTokens": answers * one.input_tokens,
        "cachedInputTokens": answers * one.cached_tokens,
        "outputTokens": answers * one.output_tokens,
        "reasoningOutputTokens": answers * one.reasoning_tokens,
        "totalTokens": answers * one.total_tokens,
    }


@contextmanager
def _session(sim: Sim, folder: str, prompt: str) -> Iterator[subprocess.Popen[bytes]]:
    """A real session of the person's."""
    codex = subprocess.Popen(
        [sim.env["BATON_CODEX_BIN"], "exec", "--skip-git-repo-check", "--json", prompt],
        cwd=folder,
        env=sim.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield codex
    finally:
        codex.kill()
        codex.wait()


def test_a_real_supervisors_tokens_stand_beside_the_workers(sim: Sim, call: dict[str, Any]) -> None:
    begin, finish, work = threading.Event(), threading.Event(), threading.Event()
    sim.model.on(
        "<supervise>",
        shell("true"),
        stall(begin),
        shell("true"),
        shell("true"),
        stall(finish),
        say("Done."),
    )
    objective = sim.script("supervised", stall(work), write("a.txt", "x\n"), report(files=["a.txt"]))
    with _session(sim, call["workspace"], "<supervise>") as codex:
        # Its first answer is over, its second is held back until the run has begun.
        thread = sim.model.wait_for(lambda r: "<supervise>" in r.text and r.number == 1).thread_id
        answer = sim.delegate(
            {**call, "objective": objective, "waitSeconds": 0},
            Session(cwd=call["workspace"], thread_id=thread),
        )
        begin.set()
        sim.model.wait_for(lambda r: r.thread_id == thread and r.number == 3)
        work.set()
        run_id = answer["runId"]
        assert sim.wait(run_id)["verdict"] == "unverified"
        finish.set()
        assert codex.wait(60) == 0
    told = sim.inspect(run_id, "usage")
    (supervisor,) = told["supervisors"]
    assert supervisor["threadId"] == thread
    assert supervisor["usage"] == _tokens(sim, 2)
    assert supervisor["session"] == _tokens(sim, 4)
    assert supervisor["model"] == sim.model.requests_of(thread)[0].model
    worker = sim.result(run_id).thread_id
    assert told["workers"]["usage"] == _tokens(sim, sim.model.answers_of(str(worker)))
    assert [entry["usage"] for entry in told["tasks"]] == [told["workers"]["usage"]]
    assert (supervisor["cost"], told["workers"]["cost"]) == (None, None)
    assert told["workers"]["unknownAttempts"] == 0


@pytest.mark.parametrize("joins", ["wait", "control"])
def test_a_session_that_takes_a_run_over_counts_from_then_on(
    sim: Sim, call: dict[str, Any], joins: str
) -> None:
    begun, joined, ended, work = (threading.Event() for _ in range(4))
    prompt = f"<take over by {joins}>"
    sim.model.on(
        prompt,
        shell("true"),
        stall(begun),
        shell("true"),
        stall(joined),
        shell("true"),
        stall(ended),
        say("Done."),
    )
    objective = sim.script(
        f"taken over by {joins}", stall(work), write("a.txt", "x\n"), report(files=["a.txt"])
    )
    with _session(sim, call["workspace"], prompt) as codex:
        thread = sim.model.wait_for(lambda r: prompt in r.text and r.number == 1).thread_id
        taker = Session(cwd=call["workspace"], thread_id=thread)
        run_id = sim.delegate({**call, "objective": objective, "waitSeconds": 0})["runId"]
        begun.set()
        # One answer of its own work before it asks after the run.
        sim.model.wait_for(lambda r: r.thread_id == thread and r.number == 2)
        if joins == "wait":
            sim.wait(run_id, 0, taker)
        else:
            assert sim.control(run_id, "resume", session=taker)["did"] == "it is at work"
        joined.set()
        sim.model.wait_for(lambda r: r.thread_id == thread and r.number == 3)
        work.set()
        sim.wait(run_id)
        ended.set()
        assert codex.wait(60) == 0
    sim.wait(run_id, 0, Session(thread_id="00000000-0000-4000-8000-0000000000ff"))
    (supervisor,) = sim.inspect(run_id, "usage")["supervisors"]
    assert supervisor["threadId"] == thread
    assert (supervisor["usage"], supervisor["session"]) == (_tokens(sim, 1), _tokens(sim, 4))


def test_prices_of_the_person_make_a_cost_and_only_where_everything_is_known(
    sim: Sim, call: dict[str, Any]
) -> None:
    objective = sim.script("priced", write("a.txt", "x\n"), report(files=["a.txt"]))
    run_id = sim.delegate({**call, "objective": objective})["runId"]
    dear = sim.delegate({**call, "tier": "terra", "objective": sim.script("unpriced", report())})["runId"]
    with sim.policy(PRICES):
        told, other = sim.inspect(run_id, "usage"), sim.inspect(dear, "usage")
    used = told["workers"]["usage"]
    assert told["tasks"][0]["model"] == "gpt-6-luna"
    fresh = used["inputTokens"] - used["cachedInputTokens"]
    expected = (fresh * 2 + used["cachedInputTokens"] * 0.5 + used["outputTokens"] * 10) / 1_000_000
    assert told["workers"]["cost"] == told["tasks"][0]["cost"] == pytest.approx(expected)
    assert (other["workers"]["cost"], other["tasks"][0]["cost"]) == (None, None)
    assert told["supervisors"] == [] and "pricesFault" not in told
    with sim.policy("[prices\n"):
        told = sim.inspect(run_id, "usage")
    assert "policy.toml" in told["pricesFault"]
    assert (told["workers"]["usage"], told["workers"]["cost"]) == (used, None)


def test_what_nobody_reported_is_unknown_and_not_nothing(sim: Sim, call: dict[str, Any]) -> None:
    objective = sim.script(
        "refused", Fail(400, {"error": {"message": "no", "type": "invalid_request_error"}})
    )
    session = Session(cwd=call["workspace"], thread_id="00000000-0000-4000-8000-00000000abcd")
    run_id = sim.delegate({**call, "objective": objective}, session)["runId"]
    with sim.policy(PRICES):
        told = sim.inspect(run_id, "usage")
    unknown = dict.fromkeys(_tokens(sim, 0))
    assert told["workers"] == {"usage": unknown, "cost": None, "unknownAttempts": 1}
    (supervisor,) = told["supervisors"]
    assert (supervisor["usage"], supervisor["session"], supervisor["cost"]) == (unknown, unknown, None)
