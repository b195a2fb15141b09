"""Workflows end to end: real Codex processes as agents and workers, scripted answers, real git."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from baton.contract.errors import BatonError, InvalidInput, NoAgent, WrongState
from baton.process.tree import processes_with_marker
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import Stall, stall
from baton.simulate.workers import blocked, honest
from e2e.plugin_session import answers, install, policy, script, supervise, tool
from e2e.sim import Sim, Workspace
from e2e.workflow_desk import (
    CHECK,
    MAKER,
    POLICY,
    PROJECT,
    RIGHT,
    WRONG,
    Desk,
    a_patch,
    diff,
    findings,
    opinion,
)

pytestmark = pytest.mark.codex


@pytest.fixture
def desk(sim: Sim, workspace: Callable[..., Workspace]) -> Iterator[Desk]:
    with sim.policy(POLICY):
        yield Desk(sim, workspace(dict(PROJECT)))


def test_a_delegated_job_is_done_in_eight_calls_and_fifteen_kilobytes(desk: Desk) -> None:
    started = desk.start()
    assert started["state"] == "plan" and started["due"]["by"] == f"ask codex ({MAKER})"
    assert desk.agents.asked == []
    desk.agents.on("plan", opinion("1. Turn the sign in calc.py."))
    desk.agents.on("brief", opinion("In calc.py, add adds."))
    desk.agents.on("implement", a_patch(("calc.py", WRONG, RIGHT)))
    desk.agents.on("review", findings())
    for state in ("brief", "implement", "apply"):
        assert desk.go()["state"] == state, desk.told
    assert desk.project.read("calc.py") == WRONG
    told = desk.call("record", step="apply", commit=desk.apply())
    # The tests were run in the same call: they send nothing.
    assert told["state"] == "review" and "passed (said by baton)" in told["did"][-1], told
    assert desk.go()["state"] == "synthesise", desk.told
    told = desk.call("record", step="synthesise", text="It adds now.")
    assert told["state"] == "completed", told
    assert desk.calls <= 8 and desk.received <= 15_000, (desk.calls, desk.received)
    assert desk.agents.left() == {}


def test_a_failing_test_leads_to_a_fix_that_is_told_what_failed(desk: Desk) -> None:
    still_wrong = "def add(a, b):\n    return a * b\n"
    desk.to_patch(a_patch(("calc.py", WRONG, still_wrong)))
    desk.agents.on("fix", a_patch(("calc.py", still_wrong, RIGHT)))
    desk.agents.on("review", findings())
    told = desk.call("record", step="apply", commit=desk.apply())
    assert (told["state"], told["round"]) == ("fix", "1 of 5"), told
    assert "python3 check.py" in told["note"]
    assert desk.go()["state"] == "apply_fix"
    (prompt,) = desk.agents.prompts("fix")
    assert "failedTests" in prompt and "AssertionError: 6" in prompt
    # Only our own sentence speaks of findings.
    assert prompt.count("openFindings") == 1
    assert desk.call("record", step="apply", commit=desk.apply())["state"] == "review"
    desk.go()
    assert desk.call("record", step="synthesise", text="Right now.")["state"] == "completed"
    outcomes = [one.report.outcome.value for one in desk.steps("test") if one.report]
    assert outcomes == ["failed", "passed"]


@pytest.mark.long
def test_a_finding_that_is_open_is_fixed_and_looked_at_again(desk: Desk) -> None:
    desk.to_patch()
    better = "def add(a, b):\n    return b + a\n"
    desk.agents.on("review", findings({"title": "Order matters"}))
    desk.agents.on("review", findings(earlier=[{"finding": "F1", "status": "gone"}]))
    desk.agents.on("fix", a_patch(("calc.py", RIGHT, better)))
    desk.call("record", step="apply", commit=desk.apply())
    told = desk.go()
    assert told["findings"][0]["title"] == "Order matters", told
    with pytest.raises(InvalidInput, match="F1"):
        desk.call("record", step="synthesise", text="Fine.")
    with pytest.raises(InvalidInput, match="nothing changed since"):
        desk.call(
            "record", step="synthesise", text="x", dispositions=[{"finding": "F1", "disposition": "fixed"}]
        )
    with pytest.raises(InvalidInput, match="reason"):
        desk.call(
            "record", step="synthesise", text="x", dispositions=[{"finding": "F1", "disposition": "rejected"}]
        )
    told = desk.call(
        "record", step="synthesise", text="It holds.", dispositions=[{"finding": "F1", "disposition": "open"}]
    )
    assert (told["state"], told["round"]) == ("fix", "1 of 5"), told
    desk.go()
    assert "Order matters" in desk.agents.prompts("fix")[0]
    desk.call("record", step="apply", commit=desk.apply())
    assert desk.go()["state"] == "synthesise", desk.told
    again = desk.agents.prompts("review")[1]
    # The same review goes on, over the change alone.
    assert "Order matters" in again and "return b + a" in again and "return a - b" not in again
    reviews = [desk.house.ledger.review(str(one.review_id)) for one in desk.steps("review") if one.ended_at]
    done = [review for review in reviews if review.consultation_id]
    assert done[1].parent == done[0].review_id
    told = desk.call(
        "record", step="synthesise", text="Gone.", dispositions=[{"finding": "F1", "disposition": "fixed"}]
    )
    assert told["state"] == "completed", told


@pytest.mark.long
def test_a_reviewer_that_cannot_be_read_neither_blocks_nor_completes(desk: Desk) -> None:
    desk.to_patch()
    desk.call("record", step="apply", commit=desk.apply())
    # What it says, and what it says when it is asked for the form.
    desk.agents.on("review", opinion("Looks good to me!"), opinion("As I said."))
    told = desk.go()
    assert told["state"] == "synthesise" and told["unparsed"] == ["other"], told
    assert "review retry" in told["next"]
    told = desk.call("record", step="synthesise", text="I see nothing either.")
    assert told["state"] == "review" and "could not be read" in told["note"], told
    desk.agents.on("review", findings())
    assert desk.go()["state"] == "synthesise", desk.told
    assert desk.call("record", step="synthesise", text="Clean.")["state"] == "completed"


@pytest.mark.long
def test_a_reviewer_that_stays_unreadable_needs_attention(desk: Desk) -> None:
    desk.to_patch()
    desk.call("record", step="apply", commit=desk.apply())
    for _ in range(2):
        desk.agents.on("review", opinion("Looks good to me!"), opinion("As I said."))
        desk.go()
        told = desk.call("record", step="synthesise", text="I see nothing either.")
    assert told["state"] == "needs_attention" and "could not be read" in told["note"], told
    assert "replan" in told["next"]


def test_a_patch_that_does_not_apply_goes_back_with_the_reason(desk: Desk) -> None:
    stale = a_patch(("calc.py", "def add(x, y):\n    return x\n", RIGHT))
    outside = a_patch(("calc.py", WRONG, RIGHT), ("check.py", CHECK, "pass\n"))
    told = desk.to_patch(stale, outside, opinion("No patch.", None), allowedFiles=["calc.py"])
    assert told["state"] == "implement" and "does not apply" in told["note"], told
    assert "calc.py" in told["note"]
    told = desk.go()
    assert told["state"] == "implement" and "leaves the scope: check.py" in told["note"], told
    assert "does not apply" in desk.agents.prompts("implement")[1]
    desk.go()
    assert desk.told["state"] == "implement"
    # An answer in another form holds a patch all the same.
    desk.agents.on("implement", opinion(f"Here:\n```diff\n{diff(('calc.py', WRONG, RIGHT))}```\n"))
    assert desk.go()["state"] == "apply", desk.told
    failed = [one for one in desk.steps("implement") if one.state.value == "failed"]
    assert len(failed) == 3 and all(one.output or one.product for one in failed)


def test_a_commit_that_does_not_hold_the_change_is_no_evidence(desk: Desk) -> None:
    start = desk.project.git("rev-parse", "HEAD").strip()
    desk.to_patch()

    def refused(commit: str | None, why: str) -> None:
        with pytest.raises(InvalidInput, match=why):
            desk.call("record", step="apply", **({"commit": commit} if commit else {}))
        assert desk.call("status")["state"] == "apply"

    refused(None, "commit")
    refused("deadbeef", "there is no commit deadbeef")
    refused("--help", "not the id of a commit")
    refused(start, "was there before")
    desk.project.write("notes.txt", "mine\n")
    desk.project.git("add", "notes.txt")
    desk.project.git("commit", "-q", "-m", "notes")
    refused(desk.project.git("rev-parse", "HEAD").strip(), "does not hold the change in calc.py")
    side = desk.project.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "side").strip()
    refused(side, "not in the history of HEAD")
    held = desk.apply()
    desk.project.write("calc.py", WRONG)
    refused(held, "the files do not")
    desk.project.git("checkout", "-q", "calc.py")
    told = desk.call("record", step="apply", commit=held[:10])
    assert told["state"] == "review" and held[:12] in told["did"][0], told


@pytest.mark.long
def test_a_patch_that_is_not_wanted_is_made_again(desk: Desk) -> None:
    desk.to_patch()
    told = desk.call("record", step="apply", reject="Keep the order of the operands.")
    assert told["state"] == "implement", told
    desk.agents.on("implement", a_patch(("calc.py", WRONG, RIGHT)))
    assert desk.go()["state"] == "apply"
    assert "Keep the order of the operands." in desk.agents.prompts("implement")[1]


@pytest.mark.long
def test_what_the_person_edits_in_between_is_tested_again(desk: Desk) -> None:
    desk.to_patch()
    desk.call("record", step="apply", commit=desk.apply())
    first = desk.steps("test")[-1]
    desk.project.write("calc.py", RIGHT + "\n\nEXTRA = 1\n")
    told = desk.call("next")
    # The token that was shown stood for other files.
    assert told["state"] == "review" and desk.steps("test")[-1].number > first.number, told
    assert desk.steps("test")[-1].tree != first.tree
    desk.agents.on("review", findings(), findings(earlier=[]))
    assert desk.go()["state"] == "synthesise", desk.told
    assert "EXTRA" in desk.agents.prompts("review")[0]
    desk.project.write("calc.py", RIGHT)
    told = desk.call("record", step="synthesise", text="Fine.")
    assert told["state"] == "review" and "changed since" in desk.steps("synthesise")[-1].detail, told
    desk.go()
    assert desk.call("record", step="synthesise", text="Fine.")["state"] == "completed"


def test_the_cap_needs_attention_and_is_never_completed(desk: Desk, sim: Sim) -> None:
    with sim.policy(POLICY.replace("[workflow]\n", "[workflow]\nmax_fix_rounds = 0\n")):
        desk.to_patch()
        desk.agents.on("review", findings({"severity": "critical"}))
        desk.call("record", step="apply", commit=desk.apply())
        desk.go()
        told = desk.call(
            "record", step="synthesise", text="Open.", dispositions=[{"finding": "F1", "disposition": "open"}]
        )
        assert told["state"] == "needs_attention" and "0 of 0 fix rounds" in told["note"], told
        assert desk.call("next")["state"] == "needs_attention"
        with pytest.raises(InvalidInput, match="moreRounds"):
            desk.call("replan", step="fix")
        shown = desk.call("replan", step="fix", moreRounds=1)
        assert shown["would"]["rounds"] == "1 of 1" and desk.call("status")["state"] == "needs_attention"
        told = desk.call("replan", step="fix", moreRounds=1, confirm=shown["confirm"])
        assert (told["state"], told["round"]) == ("fix", "1 of 1"), told


@pytest.mark.long
def test_the_policy_moves_no_workflow_that_runs(desk: Desk, sim: Sim) -> None:
    desk.start()
    moved = POLICY.replace(f'model = "{MAKER}"', 'model = "gpt-5.5"')
    with sim.policy(moved), pytest.raises(NoAgent, match="replan the step"):
        desk.call("next")
    assert desk.agents.asked == []


@pytest.mark.long
def test_a_replan_changes_what_it_names_after_a_confirmation_of_its_own(desk: Desk) -> None:
    desk.start()
    shown = desk.call("replan", bindings={"plan": "host"})
    assert list(shown["would"]["bindings"]) == ["plan"]
    with pytest.raises(InvalidInput, match="confirm"):
        desk.call("replan", bindings={"plan": "host"}, confirm="0" * 12)
    with pytest.raises(InvalidInput, match="confirm"):
        desk.call("replan", bindings={"brief": "host"}, confirm=shown["confirm"])
    told = desk.call("replan", bindings={"plan": "host"}, confirm=shown["confirm"])
    assert told["next"].startswith("record step=plan"), told
    bound = desk.call("status")["bindings"]
    assert bound["plan"].startswith("host") and bound["brief"] == f"ask codex ({MAKER})"
    assert desk.call("record", step="plan", text="Turn the sign.")["state"] == "brief"
    with pytest.raises(WrongState, match="to_review is not possible"):
        desk.call("replan", step="review")
    shown = desk.call("replan", step="plan")
    assert desk.call("replan", step="plan", confirm=shown["confirm"])["state"] == "plan"


@pytest.mark.long
def test_an_isolated_worker_writes_apart_and_baton_lands_it(desk: Desk, sim: Sim) -> None:
    desk.agents.on("plan", opinion("Turn the sign."))
    desk.agents.on("brief", opinion("In calc.py."))
    desk.agents.on("implement", honest({"calc.py": RIGHT}))
    desk.agents.on("review", findings())
    desk.start({"review": "ask:other"}, preset="delegated", allowedFiles=["calc.py"])
    desk.go()
    desk.go()
    assert "isolated worker" in desk.told["due"]["by"], desk.told
    told = desk.go()
    # It was landed and tested in the same call.
    assert told["state"] == "review" and desk.project.read("calc.py") == RIGHT, told
    run_id = desk.steps("implement")[-1].run_id
    assert run_id and sim.task(run_id, "implement").outcome.integration == "applied"
    desk.go()
    assert desk.call("record", step="synthesise", text="Fine.")["state"] == "completed"
    assert desk.calls <= 8 and desk.received <= 15_000
    assert desk.call("status")["turns"] == 4


@pytest.mark.long
def test_a_worker_that_leaves_its_scope_is_kept_and_the_step_tried_again(desk: Desk) -> None:
    desk.agents.on("implement", blocked(), honest({"calc.py": RIGHT}))
    desk.start({"implement": "isolated", "apply": "baton"}, allowedFiles=["calc.py"])
    desk.call("record", step="plan", text="Turn the sign.")
    desk.call("record", step="brief", text="In calc.py.")
    told = desk.go()
    assert told["state"] == "implement" and "blocked" in str(told.get("did")), told
    assert desk.go()["state"] == "test", desk.told


@pytest.mark.long
def test_the_session_does_everything_but_the_review(desk: Desk) -> None:
    desk.agents.on("review", findings())
    desk.start({}, tests=[])
    desk.call("record", step="plan", text="Turn the sign.")
    desk.call("record", step="brief", text="In calc.py.")
    with pytest.raises(InvalidInput, match="nothing in the workspace changed"):
        desk.call("record", step="implement", text="Done.")
    desk.project.write("calc.py", RIGHT)
    desk.call("record", step="implement", text="Done.")
    told = desk.call("record", step="test", report={"command": "make check"})
    assert told["state"] == "test" and "proves nothing" in told["did"][-1], told
    told = desk.call("record", step="test", report={"command": "make check", "exitCode": 0})
    assert "said by host" in told["did"][-1] and told["state"] == "review", told
    desk.go()
    assert "said by host" in desk.agents.prompts("review")[0]
    assert desk.call("record", step="synthesise", text="Fine.")["state"] == "completed"


@pytest.mark.parametrize(
    ("bindings", "why"),
    [
        ({"implement": "patch:codex", "review": "ask:codex"}, "who does implement"),
        ({"fix": "patch:codex", "review": "ask:codex"}, "who does fix"),
        ({"implement": "patch:other", "review": "ask:twin"}, "who does implement"),
    ],
)
def test_nobody_reviews_their_own_work(desk: Desk, sim: Sim, bindings: dict[str, str], why: str) -> None:
    twin = POLICY.split("[consult.agents.other]")[1].split("[review]")[0]
    with sim.policy(POLICY + "[consult.agents.twin]" + twin), pytest.raises(NoAgent, match=why):
        desk.start(bindings)
    assert desk.agents.asked == []


@pytest.mark.long
def test_planners_may_be_kept_from_reviewing_as_well(desk: Desk, sim: Sim) -> None:
    bindings = {"plan": "ask:codex", "review": "ask:codex"}
    desk.start(bindings)
    strict = POLICY.replace("[workflow]\n", "[workflow]\ndifferent_from_planner = true\n")
    with sim.policy(strict), pytest.raises(NoAgent, match="who does plan"):
        desk.start(bindings)


@pytest.mark.long
def test_a_ceiling_is_reached_before_anything_is_sent_and_the_token_still_holds(desk: Desk, sim: Sim) -> None:
    low = POLICY + "[workflow.spend]\nmax_turns_per_workflow = 1\n"
    with sim.policy(low):
        desk.agents.on("plan", opinion("Turn the sign."))
        desk.start()
        with pytest.raises(BatonError, match="1 of 1 turns"):
            desk.go()
    assert [phase for phase, _ in desk.agents.asked] == ["plan"]
    assert desk.call("status")["state"] == "brief"


@pytest.mark.long
def test_cancelled_is_over_and_what_was_made_is_kept(desk: Desk) -> None:
    desk.to_patch()
    made = desk.steps("implement")[-1]
    told = desk.call("cancel")
    assert told["state"] == "cancelled" and desk.call("cancel")["state"] == "cancelled"
    with pytest.raises(WrongState, match="cancelled"):
        desk.call("record", step="apply", commit="deadbeef")
    assert RIGHT.splitlines()[1] in desk.call("status", what="patch")["text"]
    assert desk.project.read("calc.py") == WRONG and made.result


@pytest.mark.long
def test_a_tree_that_is_not_clean_is_refused_unless_allowed(desk: Desk) -> None:
    desk.project.write("calc.py", RIGHT)
    with pytest.raises(InvalidInput, match="differ from HEAD"):
        desk.start()
    assert desk.start(allowDirty=True)["state"] == "plan"


def kill_oldest(desk: Desk, marker: str) -> None:
    """Kill the process that works for a consultation or a workflow, as it is."""
    found = ()
    while not found:
        found = processes_with_marker("BATON_RUN", marker)
    os.kill(min(found, key=lambda process: process.start_time).pid, signal.SIGKILL)


@pytest.mark.long
def test_an_agent_killed_in_the_middle_is_asked_again_only_when_that_is_confirmed(desk: Desk) -> None:
    desk.agents.on("plan", Stall(), opinion("Turn the sign."))
    desk.start()
    desk.go(waitSeconds=0)
    asked = str(desk.steps("plan")[-1].consultation_id)
    desk.sim.model.wait_for(lambda request: desk.agents.asked != [] and request.thread_id != "")
    kill_oldest(desk, asked)
    told = desk.call("next")
    assert told["state"] == "plan" and "interrupted" in told["did"][-1], told
    assert len(desk.agents.asked) == 1
    assert desk.go()["state"] == "brief" and len(desk.agents.asked) == 2


@pytest.mark.long
def test_tests_that_are_killed_run_again(desk: Desk) -> None:
    desk.to_patch()
    told = desk.call("record", step="apply", commit=desk.apply(), waitSeconds=0)
    assert told["working"]["step"] == "test" and desk.steps("test")[-1].report is None, told
    kill_oldest(desk, desk.id)
    assert desk.call("next")["state"] == "review", desk.told
    (done,) = desk.steps("test")
    assert done.report is not None and done.report.outcome.value == "passed"
    until_gone(desk.id)


@pytest.mark.long
def test_cancelling_ends_tests_that_run(desk: Desk) -> None:
    desk.start({"test": "baton"}, tests=["python3 -c 'import threading; threading.Event().wait()'"])
    desk.call("record", step="plan", text="Turn the sign.")
    desk.call("record", step="brief", text="In calc.py.")
    desk.project.write("calc.py", RIGHT)
    assert desk.call("record", step="implement", waitSeconds=0)["working"]["step"] == "test"
    assert desk.call("cancel")["state"] == "cancelled"
    until_gone(desk.id)


def until_gone(marker: str) -> None:
    end = time.monotonic() + 60.0
    while processes_with_marker("BATON_RUN", marker):
        assert time.monotonic() < end, "something is left of it"


@pytest.mark.long
def test_an_isolated_worker_outlives_the_session_that_started_it(desk: Desk, sim: Sim) -> None:
    gate = threading.Event()
    desk.agents.on("implement", (stall(gate), *honest({"calc.py": RIGHT})))
    desk.start({"implement": "isolated", "apply": "baton"}, allowedFiles=["calc.py"])
    desk.call("record", step="plan", text="Turn the sign.")
    desk.call("record", step="brief", text="In calc.py.")
    desk.engine = sim.new_service()
    desk.go(waitSeconds=0)
    sim.model.wait_for(lambda request: desk.agents.asked != [])
    desk.engine.close()
    gate.set()
    desk.engine = sim.service
    told = desk.call("next")
    assert told["state"] == "test" and desk.project.read("calc.py") == RIGHT, told
    assert len({one.run_id for one in desk.steps("implement")}) == 1


ASK = "Please do the whole job on the sum"


@pytest.mark.long
def test_a_real_session_works_in_phases_through_the_plugin(codex_binary: Path, test_root: Path) -> None:
    with ScriptedModel() as model:
        installed = install(codex_binary, model, test_root)
        policy(installed, POLICY)
        start = {"action": "start", "goal": "The sum is right.", "bindings": {"review": "ask:other"}}
        supervise(
            model,
            ASK,
            script(
                tool("workflow", **start, allowDirty=True),
                tool("workflow", action="start", goal="x", bindings={"review": "host"}),
                tool("workflow", action="next"),
            ),
        )
        installed.session(ASK)
        started, refused, lost = answers(model, ASK)
        assert started["state"] == "plan" and "record step=plan" in started["next"], started.text
        assert started["workflowId"] in started.text
        assert refused.failed and "review cannot be bound" in refused.text
        assert lost.failed and "id" in lost.text
