"""The ladder with real workers: what is tried again by itself, and what ends with its reason."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from baton.contract.claim import ClaimStatus
from baton.simulate.script import (
    Fail,
    Step,
    context_overflow,
    drop_connection,
    overloaded,
    rate_limited,
    say,
    unknown_model,
    usage_limit,
)
from baton.simulate.workers import blocked, false_pass, report, write
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

CHECK = "grep -q right a.txt"
WRONG = false_pass({"a.txt": "wrong\n"})
RIGHT = (write("a.txt", "right\n"), report(files=["a.txt"]))

_numbers = itertools.count(1)

Begin = Callable[..., dict[str, Any]]


@pytest.fixture
def begin(sim: Sim, workspace: Callable[..., Workspace], request: pytest.FixtureRequest) -> Begin:
    """Delegate under a policy's escalation to workers that follow these steps, thread by thread."""

    def delegate(escalation: str, *steps: Step, **more: Any) -> dict[str, Any]:
        folder = workspace({"a.txt": "seed\n"})
        objective = sim.script(f"{request.node.name} {next(_numbers)}", *steps)
        call = {"objective": objective, "allowedFiles": ["a.txt"], "workspace": str(folder.path)}
        with sim.policy(f"[escalation]\n{escalation}\n"):
            return sim.delegate({**call, "verificationCommands": [CHECK], "waitSeconds": 100, **more})

    return delegate


def _routes(sim: Sim, run_id: str) -> list[tuple[str, str | None, str | None]]:
    """Kind, model and effort of each attempt, as Codex reports them."""
    return [
        (attempt.kind, attempt.route.model, attempt.route.effort)
        for attempt in sim.attempts(run_id)
        if attempt.route is not None
    ]


def test_effort_rises_first_then_the_tier_and_then_it_ends(sim: Sim, begin: Begin) -> None:
    answer = begin("max_steps = 3\nmax_waits = 0", *WRONG)
    assert answer["verdict"] == "failed", answer
    routes = _routes(sim, answer["runId"])
    luna, terra = routes[0][1], routes[3][1]
    assert routes == [
        ("first", luna, "medium"),
        ("repair", luna, "medium"),
        ("escalation", luna, "high"),
        ("escalation", terra, "medium"),
        ("escalation", terra, "high"),
    ]
    assert str(luna).endswith("-luna") and str(terra).endswith("-terra")
    decided = [attempt.result.decision for attempt in sim.attempts(answer["runId"]) if attempt.result]
    assert [(one.trouble, one.action) for one in decided if one] == [("check_failed", "retry")] * 4 + [
        ("check_failed", "stop")
    ]
    assert answer["decision"].startswith(
        "check_failed: stop: the right thing built badly; escalation.max_steps"
    )


def test_escalated_worker_goes_on_in_the_tree_and_knows_what_failed(sim: Sim, begin: Begin) -> None:
    def steps(request: Any) -> Any:
        return RIGHT[0] if "did not succeed" in request.text else WRONG[0]

    answer = begin("max_steps = 1", steps, report(files=["a.txt"]), report(files=["a.txt"]))
    assert (answer["verdict"], answer["integration"], answer["attempts"]) == ("verified", "applied", 3), (
        answer
    )
    assert "decision" not in answer
    last = sim.attempts(answer["runId"])[-1]
    assert last.thread_id != sim.attempts(answer["runId"])[0].thread_id
    told = sim.model.requests_of(str(last.thread_id))[0].text
    assert "Attempt 2 did not succeed (the right thing built badly: effort high after medium)" in told
    assert CHECK in told


@pytest.mark.parametrize(
    ("trouble", "step"),
    [
        ("rate_limit", rate_limited(times=1)),
        ("overloaded", replace(overloaded(), times=1)),
        ("network", drop_connection(times=1)),
    ],
)
def test_service_that_cannot_serve_is_waited_for_in_the_same_thread(
    sim: Sim, begin: Begin, trouble: str, step: Step
) -> None:
    answer = begin("max_waits = 1\nwait_seconds = 0.2", step, *RIGHT)
    assert (answer["verdict"], answer["attempts"]) == ("verified", 2), str(answer)
    first, second = sim.attempts(answer["runId"])
    assert (second.kind, second.thread_id) == ("wait", first.thread_id)
    assert first.result is not None and first.result.decision is not None
    assert (first.result.decision.trouble, first.result.decision.wait_seconds) == (trouble, 0.2)


def test_waits_are_bounded_and_the_last_one_ends_the_task(sim: Sim, begin: Begin) -> None:
    limited = rate_limited(times=1)
    answer = begin("max_waits = 1\nwait_seconds = 0.1", limited, limited)
    assert answer["verdict"] == "failed"
    assert answer.get("decision", str(answer)).endswith("it has waited 1 time (escalation.max_waits)")
    assert [attempt.kind for attempt in sim.attempts(answer["runId"])] == ["first", "wait"]


@pytest.mark.parametrize(
    ("trouble", "end"),
    [
        ("worker_failed", report(ClaimStatus.FAILED, "I could not.")),
        ("no_report", say("All done, have a look!")),
    ],
)
def test_worker_that_did_not_manage_is_followed_by_one_at_a_higher_effort(
    sim: Sim, begin: Begin, trouble: str, end: Step
) -> None:
    begun = begin("max_steps = 1", RIGHT[0], end)
    assert [(kind, effort) for kind, _, effort in _routes(sim, begun["runId"])] == [
        ("first", "medium"),
        ("escalation", "high"),
    ]
    decided = [attempt.result.decision for attempt in sim.attempts(begun["runId"]) if attempt.result]
    assert [(one.trouble, one.action) for one in decided if one] == [(trouble, "retry"), (trouble, "stop")]


def test_change_out_of_scope_and_work_that_nothing_proves_end_at_once(sim: Sim, begin: Begin) -> None:
    # A new neighbour of a single allowed file is what no sandbox prevents.
    strayed = begin("max_steps = 3", write("b.txt", "x\n"), report(files=["b.txt"]))
    assert strayed["decision"].startswith("out_of_scope: stop: a change is out of scope")
    unproven = begin("max_steps = 3", *RIGHT, verificationCommands=[])
    assert unproven["decision"] == "unproven: stop: nothing failed, but nothing proves it"
    for answer in (strayed, unproven):
        assert len(sim.attempts(answer["runId"])) == 1


@pytest.mark.parametrize(
    ("step", "decision"),
    [
        (context_overflow(), "context_overflow: stop: the task is larger than a context"),
        (usage_limit(), "usage_limit: stop: the account's usage limit is reached"),
        (Fail(401, {"error": {"message": "no key"}}), "auth: stop: Codex is not logged in"),
        (Fail(400, {"error": {"message": "bad", "type": "invalid_request_error"}}), "bad_request: stop: "),
        (unknown_model("it"), "unknown_model: stop: the service does not know the model; "),
        (blocked()[0], "blocked: stop: something is missing"),
        (report(), "no_change: stop: it was done already, or the brief missed"),
    ],
    ids=lambda value: value.partition(":")[0] if isinstance(value, str) else "",
)
def test_what_no_attempt_can_mend_ends_at_once(sim: Sim, begin: Begin, step: Step, decision: str) -> None:
    answer = begin("max_steps = 3\nmax_waits = 3", step, verificationCommands=["test -f a.txt"])
    assert answer.get("decision", str(answer)).startswith(decision)
    assert len(sim.attempts(answer["runId"])) == 1


def test_another_model_takes_over_only_when_the_policy_lets_it(sim: Sim, begin: Begin) -> None:
    def by_model(request: Any) -> Any:
        return RIGHT[0] if request.model == "gpt-5.6-luna" else unknown_model(request.model)

    answer = begin("max_steps = 1\nother_model = true", by_model, RIGHT[1])
    assert (answer["verdict"], answer["route"]["model"]) == ("verified", "gpt-5.6-luna"), answer


def test_no_worker_was_asked_more_than_its_script_says(sim: Sim) -> None:
    assert sim.model.surprises == ()
