"""What changes under a workflow while it runs: the policy, what it refers to, who asks, and other calls."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from baton.consult.retention import forget_old
from baton.contract.review import ReviewAction, ReviewCall
from baton.contract.states import RunState
from baton.contract.workflow import StepState, WorkflowState
from baton.engine.retention import Sized, decide
from baton.ledger.consultations import DAY
from baton.ledger.records import RunRecord
from baton.review.service import ReviewService
from baton.workflow.doors import ground_of, workflow_lock
from baton.workspace.collect import collect
from consult.waiting import until
from workflow.conftest import POLICY, Desk
from workflow.driven import BINDINGS, RIGHT, WRONG, git, said
from workflow.test_going_on import at_review

FINDING = {
    "severity": "important",
    "title": "Wrong",
    "detail": "d",
    "path": None,
    "line": None,
    "confidence": "low",
    "suggestion": None,
}


def test_a_reviewer_that_is_another_model_now_is_not_asked(desk: Desk) -> None:
    told = at_review(desk)
    desk.policy.write_text(POLICY.replace("other/model-3", "other/model-4"))
    assert "replan the step" in desk.refuses("next").message
    assert desk.refuses("next", confirm=told["confirm"])
    shown = desk.call("replan", bindings={"review": "ask:opencode"})
    told = desk.call("replan", bindings={"review": "ask:opencode"}, confirm=shown["confirm"])
    assert told["due"]["by"] == "ask opencode (other/model-4)"


@pytest.mark.parametrize("name", ["consult", "review", "workflow"])
def test_what_is_switched_off_mid_way_stops_it_and_it_can_be_seen_and_cancelled(
    desk: Desk, name: str
) -> None:
    told = desk.start()
    desk.policy.write_text(POLICY.replace(f"[{name}]\nenabled = true", f"[{name}]\nenabled = false"))
    for arguments in ({}, {"confirm": told["confirm"]}):
        assert f"[{name}] enabled = true" in desk.refuses("next", **arguments).message
    assert desk.call("status")["state"] == "plan"
    assert desk.call("cancel")["state"] == "cancelled"


def test_texts_that_are_no_longer_kept_stop_it(desk: Desk) -> None:
    told = desk.start()
    desk.policy.write_text(POLICY.replace("[consult]\n", "[consult]\nstore_full_content = false\n", 1))
    assert "store_full_content" in desk.refuses("next", confirm=told["confirm"]).message


def test_what_a_workflow_refers_to_is_kept_as_long_as_it(desk: Desk) -> None:
    desk.script.says("opencode", {"findings": [FINDING]})
    told = at_review(desk)
    assert desk.call("next", confirm=told["confirm"])["state"] == "synthesise"
    forget_old(desk.house, at=time.time() + 1e4 * DAY)
    assert len(desk.house.ledger.reviews()) == 1
    assert desk.call("status")["findings"][0]["title"] == "Wrong"
    # Objects that no ref holds are gone: what the workflow knew of the workspace is still there.
    ground = ground_of(desk.house, desk.house.ledger.workflow(desk.id))
    (desk.folder / "later.txt").write_text("later\n")
    ground.snapshot()
    collect(ground.repo, expire="now")
    dispositions = [{"finding": "F1", "disposition": "open"}]
    (desk.folder / "later.txt").unlink()
    told = desk.call("record", step="synthesise", text="Open.", dispositions=dispositions)
    assert told["state"] == "fix", told
    (desk.folder / "calc.py").write_text(RIGHT + "\n\nMORE = 1\n")
    ground.snapshot()
    collect(ground.repo, expire="now")
    desk.call("record", step="fix", text="Added.")
    told = desk.call("record", step="test", report={"command": "c", "exitCode": 0})
    assert told["state"] == "review" and told["due"]["sends"]["diffBytes"] > 0, told
    desk.call("next", confirm=told["confirm"])
    again = desk.script.prompts("opencode")[-1]
    assert "MORE = 1" in again and "return a - b" not in again


def test_a_run_of_a_workflow_that_has_not_ended_is_not_collected(desk: Desk) -> None:
    desk.start(bindings={"review": "ask:opencode"})
    desk.house.ledger.change_workflow_step(desk.id, 1, run_id="rold")
    run = RunRecord(run_id="rold", workspace="/w", repo_key="k", state=RunState.DONE, ended_at=1.0)
    needed = desk.house.ledger.runs_of_workflows()
    (kept,) = decide([Sized(run, 10)], 1e9, 1.0, 1, needed)
    assert not kept.removed and "a workflow that has not ended needs it" in kept.why
    desk.call("cancel")
    (gone,) = decide([Sized(run, 10)], 1e9, 1.0, 1, desk.house.ledger.runs_of_workflows())
    assert gone.removed


def test_whoever_really_did_a_step_does_not_review_it(desk: Desk) -> None:
    desk.script.says("codex", {"findings": []})
    desk.start(bindings={"review": "ask:codex"})
    desk.call("record", step="plan", text="p")
    desk.call("record", step="brief", text="b")
    (desk.folder / "calc.py").write_text(RIGHT)
    desk.model = "gpt-5.6-sol"
    desk.call("record", step="implement")
    desk.model = "gpt-6.2-sol"
    refused = desk.refuses("record", step="test", report={"command": "c", "exitCode": 0})
    assert "codex is not asked" in refused.message and "gpt-5.6-sol" in refused.message


def test_a_replan_keeps_the_rule_that_it_was_started_under(desk: Desk) -> None:
    desk.start(bindings={"implement": "patch:codex", "review": "ask:opencode"})
    loose = "[workflow]\ndifferent_from_implementer = false\n"
    desk.policy.write_text(POLICY.replace("[workflow]\n", loose))
    assert "who does implement" in desk.refuses("replan", bindings={"review": "ask:codex"}).message


def test_a_replan_shows_ceilings_that_it_would_move(desk: Desk) -> None:
    desk.start(bindings={"review": "ask:opencode"})
    desk.add_policy("[workflow.spend]\nmax_turns_per_workflow = 7\n")
    shown = desk.call("replan", bindings={"brief": "ask:codex"})
    assert shown["would"]["ceilings"] == {"costUsd": 0, "turns": 7}
    assert "ceilings" not in desk.call("replan", moreRounds=1)["would"]
    # A token stands for one replan, once.
    told = desk.call("replan", bindings={"brief": "ask:codex"})
    desk.call("replan", bindings={"brief": "ask:codex"}, confirm=told["confirm"])
    again = desk.refuses("replan", bindings={"brief": "ask:codex"}, confirm=told["confirm"])
    assert "not the token" in again.message


def test_a_fix_is_told_of_tests_that_fail_although_they_were_reviewed(desk: Desk) -> None:
    desk.policy.write_text(POLICY.replace("[workflow]\n", "[workflow]\nadvance_on_failed_test = true\n"))
    desk.script.says("opencode", {"findings": [FINDING]})
    desk.script.says("codex", said("x", {"patch": "", "summary": "?"}))
    desk.start(bindings={"review": "ask:opencode", "fix": "patch:codex"})
    desk.call("record", step="plan", text="p")
    desk.call("record", step="brief", text="b")
    (desk.folder / "calc.py").write_text(RIGHT)
    desk.call("record", step="implement")
    report = {"command": "make check", "exitCode": 1, "output": "it is seven"}
    told = desk.call("record", step="test", report=report)
    desk.call("next", confirm=told["confirm"])
    told = desk.call(
        "record",
        step="synthesise",
        text="Open.",
        dispositions=[{"finding": "F1", "disposition": "open"}],
    )
    assert told["state"] == "fix", told
    prompt = desk.call("status", what="prompt", step="fix")["text"]
    assert "it is seven" in prompt and '"title": "Wrong"' in prompt


def test_rechecks_go_on_for_as_many_rounds_as_the_workflow_has(desk: Desk) -> None:
    desk.policy.write_text(POLICY.replace("[review]\n", "[review]\nmax_fix_rounds = 1\n"))
    desk.script.says("opencode", {"findings": [FINDING]})
    told = at_review(desk)
    for number in range(3):
        told = desk.call("next", confirm=told["confirm"])
        assert told["state"] == "synthesise", told
        opened = [
            {"finding": one["id"], "disposition": "open"}
            for one in told["findings"]
            if one["severity"] == "important"
        ]
        desk.call("record", step="synthesise", text="Open.", dispositions=opened)
        (desk.folder / "calc.py").write_text(f"{RIGHT}\n\nTRY = {number}\n")
        desk.call("record", step="fix", text="Tried.")
        told = desk.call("record", step="test", report={"command": "c", "exitCode": 0})
        assert told["state"] == "review" and "confirm" in told, told


def test_a_cancel_that_was_cut_short_is_made_whole_by_the_next(desk: Desk, test_root: Path) -> None:
    gate = test_root / "gate"
    desk.script.says("codex", {**said("Turn the sign."), "gate": str(gate)})
    told = desk.start()
    desk.call("next", confirm=told["confirm"], waitSeconds=0)
    (asked,) = desk.house.ledger.consultations(-1)
    # As if the first had been killed before it stopped anybody.
    desk.house.ledger.move_workflow(desk.id, state=WorkflowState.CANCELLED)
    desk.house.ledger.change_workflow_step(desk.id, 2, state=StepState.DROPPED)
    assert desk.call("cancel")["state"] == "cancelled"
    until(lambda: desk.house.ledger.consultation(asked.consultation_id).state.at_rest)


def test_what_starts_while_it_is_cancelled_is_stopped(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.script.says("opencode", {"hang": 1})
    told = at_review(desk)
    run = ReviewService.review

    async def cancelled_first(self: ReviewService, call: ReviewCall, *more: Any, **named: Any) -> Any:
        if call.action is ReviewAction.RUN:
            desk.house.ledger.move_workflow(desk.id, state=WorkflowState.CANCELLED)
            desk.house.ledger.change_workflow_step(desk.id, 6, state=StepState.DROPPED)
        return await run(self, call, *more, **named)

    monkeypatch.setattr(ReviewService, "review", cancelled_first)
    assert desk.call("next", confirm=told["confirm"])["state"] == "cancelled"
    (review,) = desk.house.ledger.reviews()
    asked = str(review.consultation_id)
    until(lambda: desk.house.ledger.consultation(asked).state.at_rest)


def test_a_start_that_cannot_show_its_first_step_leaves_nothing(desk: Desk) -> None:
    refused = desk.refuses("start", goal="x", bindings=BINDINGS, contextPaths=["gone.py"])
    assert "gone.py" in refused.message
    assert desk.house.ledger.workflows() == []
    assert git(desk.folder, "for-each-ref", "refs/baton") == ""


@pytest.mark.parametrize(
    ("action", "given", "why"),
    [
        ("next", {"bindings": {"plan": "host"}}, "bindings: next does not take it; start and replan do"),
        ("next", {"text": "The plan."}, "text: next does not take it; record does"),
        (
            "replan",
            {"step": "research", "allowedFiles": ["x"]},
            "allowedFiles: replan does not take it; start",
        ),
        ("record", {"step": "plan", "text": "p", "tests": ["x"]}, "tests: record does not take it"),
        ("status", {"moreRounds": 1}, "moreRounds: status does not take it; replan does"),
        ("cancel", {"reject": "no"}, "reject: cancel does not take it; record does"),
        ("start", {"goal": "x", "confirm": "0"}, "confirm: start does not take it; next and replan do"),
        ("record", {"text": "p"}, "step: record needs the step; plan is due"),
        ("record", {"step": "plan", "text": "p", "commit": "deadbeef"}, "commit: plan does not take it"),
        ("next", {"confirm": "0", "context": "x"}, "context: what is confirmed is what was shown"),
    ],
)
def test_what_an_action_does_not_take_is_refused(
    desk: Desk, action: str, given: dict[str, Any], why: str
) -> None:
    desk.start(bindings={"review": "ask:opencode"})
    steps = desk.call("status")["steps"]
    assert why in desk.refuses(action, **given).message
    assert desk.call("status")["steps"] == steps and desk.call("status")["state"] == "plan"


def test_a_call_repeated_by_a_client_is_no_other_step(desk: Desk) -> None:
    desk.start(bindings={"review": "ask:opencode"})
    desk.call("record", step="plan", text="The plan.")
    assert "plan is not due" in desk.refuses("record", step="plan", text="The plan.").message
    assert desk.call("status")["state"] == "brief"
    beyond = desk.refuses("status", what="product", step="plan", offset=10**30).message
    assert "beyond the end; there are 9 bytes" in beyond
    assert desk.call("status", what="steps", offset=10**30)["steps"] == []


def test_it_can_be_seen_and_cancelled_when_its_folder_is_gone(desk: Desk, test_root: Path) -> None:
    told = desk.start()
    told = desk.call("next", confirm=told["confirm"])
    told = desk.call("record", step="brief", text="In calc.py.")
    desk.call("next", confirm=told["confirm"])
    desk.folder.rename(test_root / "elsewhere")
    assert desk.call("status")["state"] == "apply"
    assert "work" in desk.refuses("next").message
    assert desk.call("cancel")["state"] == "cancelled"


def test_of_two_sessions_one_moves_it_and_the_other_looks_and_cancels(desk: Desk) -> None:
    told = desk.start()
    lock = workflow_lock(desk.house, desk.id)
    lock.acquire(timeout=1.0)
    try:
        assert "moved by another call" in desk.refuses("next", confirm=told["confirm"]).message
        assert desk.call("status")["state"] == "plan"
        assert desk.call("cancel")["state"] == "cancelled"
    finally:
        lock.release()
    assert desk.call("next", confirm=told["confirm"])["state"] == "cancelled"
    assert desk.script.prompts("codex") == []


def test_another_branch_is_another_state_of_the_files(desk: Desk) -> None:
    git(desk.folder, "branch", "before")
    told = at_review(desk)
    git(desk.folder, "commit", "-qam", "right")
    git(desk.folder, "checkout", "-q", "before")
    assert "changed since the review was shown" in desk.refuses("next", confirm=told["confirm"]).message
    assert desk.call("next")["state"] == "test" and desk.script.prompts("opencode") == []


def test_a_patch_is_for_the_files_as_they_are_when_it_is_asked_for(desk: Desk) -> None:
    told = desk.start()
    desk.call("next", confirm=told["confirm"])
    (desk.folder / "calc.py").write_text("# old\n")
    told = desk.call("record", step="brief", text="In calc.py.")
    (desk.folder / "calc.py").write_text(WRONG)
    assert desk.call("next", confirm=told["confirm"])["state"] == "apply"
