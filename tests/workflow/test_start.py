"""What a workflow is started with, and what is refused before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton.contract.errors import InvalidInput
from baton.contract.workflow import Executor, Step, read_binding
from baton.policy.load import load_policy
from baton.workflow.doors import ground_of
from baton.workflow.ending import forget_old
from workflow.conftest import POLICY, Desk
from workflow.driven import BINDINGS, RIGHT, git, said


@pytest.mark.parametrize(
    ("step", "text", "why"),
    [
        (Step.PLAN, "patch:codex", "it takes host, ask"),
        (Step.REVIEW, "host", "it takes ask"),
        (Step.PLAN, "hots", "did you mean 'host'"),
        (Step.PLAN, "host:codex", "mixes two kinds"),
        (Step.PLAN, "ask:a,b", "at most 1"),
        (Step.REVIEW, "ask:a,a", "one twice"),
        (Step.REVIEW, "ask:a,b,c,d,e,f", "at most 5"),
        (Step.IMPLEMENT, "patch:No Name", "is not a name"),
        (Step.APPLY, "patch", "it takes host, baton"),
        (Step.TEST, "skip", "it takes host, baton"),
    ],
)
def test_a_binding_that_a_step_cannot_have_is_one_line(step: Step, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_binding(step, text)


def test_a_binding_is_who_and_how() -> None:
    assert read_binding(Step.REVIEW, "ask: a, b").names == ["a", "b"]
    assert read_binding(Step.FIX, "isolated").executor is Executor.ISOLATED
    assert read_binding(Step.PLAN, "ask:a").text == "ask:a"


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ('[workflow.bindings]\nplan = "patch"\n', "workflow.bindings.plan"),
        ('[workflow.bindings]\nplan = "ask:nobody"\n', "workflow.bindings.plan"),
        ('[workflow.bindings]\nfix = "isolated:nobody"\n', "workflow.bindings.fix"),
        ('[workflow.bindings]\ntset = "host"\n', "workflow.bindings"),
        ('[workflow.presets.cheap]\nplan = "ask:codx"\n', "workflow.presets.cheap.plan"),
        ('[workflow.presets."Not A Name"]\nplan = "host"\n', "workflow.presets"),
    ],
)
def test_a_fault_in_the_policy_names_its_key(own_home: Path, more: str, key: str) -> None:
    file = own_home / ".codex" / "baton" / "policy.toml"
    file.parent.mkdir()
    file.write_text(POLICY + more)
    with pytest.raises(InvalidInput) as refused:
        load_policy(own_home / ".codex", None)
    assert key in refused.value.message and str(file) in refused.value.message


@pytest.mark.parametrize(
    "text",
    [
        "[workflow]\nenabled = true\n",
        '[workflow]\nroots = [".", "/"]\n',
        "[workflow]\nmax_fix_rounds = 6\n",
        "[workflow]\nadvance_on_failed_test = true\n",
        "[workflow]\ndifferent_from_implementer = false\n",
        '[workflow]\ntests = ["rm -rf ."]\n',
        '[workflow.bindings]\nimplement = "patch"\n',
        '[workflow.presets.mine]\nplan = "host"\n',
        "[workflow.spend]\nmax_turns_per_workflow = 0\n",
    ],
)
def test_a_project_switches_nothing_on_and_widens_nothing(own_home: Path, test_root: Path, text: str) -> None:
    (test_root / "project" / ".codex").mkdir(parents=True)
    (test_root / "project" / ".codex" / "baton.toml").write_text(text)
    with pytest.raises(InvalidInput, match="a project may not"):
        load_policy(own_home / ".codex", test_root / "project")


def test_a_project_may_narrow(own_home: Path, test_root: Path) -> None:
    (test_root / "project" / ".codex").mkdir(parents=True)
    narrowed = "[workflow]\nmax_fix_rounds = 1\ndifferent_from_planner = true\nroots = []\n"
    (test_root / "project" / ".codex" / "baton.toml").write_text(narrowed)
    assert load_policy(own_home / ".codex", test_root / "project").workflow.max_fix_rounds == 1


@pytest.mark.parametrize("name", ["consult", "review", "workflow"])
def test_each_part_that_is_switched_off_is_named(desk: Desk, name: str) -> None:
    desk.policy.write_text(POLICY.replace(f"[{name}]\nenabled = true", f"[{name}]\nenabled = false"))
    assert f"[{name}] enabled = true" in desk.refuses("start", goal="x").message


def test_a_workflow_is_its_texts(desk: Desk) -> None:
    desk.policy.write_text(POLICY.replace("[consult]\n", "[consult]\nstore_full_content = false\n", 1))
    assert "store_full_content" in desk.refuses("start", goal="x").message


def test_a_preset_lies_over_the_policy_and_the_call_over_both(desk: Desk) -> None:
    desk.add_policy(
        '[workflow.bindings]\nplan = "ask:codex"\nbrief = "ask:codex"\nresearch = "host"\n'
        '[workflow.presets.cheap]\nbrief = "ask:opencode"\nresearch = "ask:opencode"\n'
    )
    desk.start(preset="cheap", bindings={"research": "skip", "review": "ask:opencode"})
    bound = desk.call("status")["bindings"]
    assert bound["plan"].startswith("ask codex") and bound["brief"].startswith("ask opencode")
    assert bound["research"] == "skip" and bound["implement"].startswith("host")
    told = desk.refuses("start", goal="x", preset="chaep")
    assert "did you mean 'cheap'" in told.message


def test_without_a_name_a_step_goes_to_the_best_score(desk: Desk) -> None:
    desk.start(bindings={"plan": "ask", "implement": "patch", "review": "ask"})
    bound = desk.call("status")["bindings"]
    # Claude has the best score for planning; whoever implements cannot review.
    assert bound["plan"].startswith("ask claude") and bound["review"] != bound["implement"]
    implementer = bound["implement"].split()[1]
    assert not bound["review"].startswith(f"ask {implementer}")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"bindings": {**BINDINGS, "implement": "isolated"}}, "allowedFiles"),
        ({"bindings": {**BINDINGS, "apply": "baton"}}, "a patch is applied by the host"),
        ({"bindings": {**BINDINGS, "test": "baton"}}, "name them in tests"),
        ({"bindings": {**BINDINGS, "plan": "ask:nobody"}}, "nobody"),
        ({"bindings": {"review": "ask:codex,opencode,claude,copilot"}}, "review.max_reviewers"),
        ({"tests": ["a && b"]}, "&&"),
        ({"allowedFiles": ["../up"]}, "../up"),
        ({"workspace": "relative"}, "absolute"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(desk: Desk, arguments: dict[str, Any], why: str) -> None:
    refused = desk.refuses("start", **{"goal": "x", "bindings": BINDINGS, **arguments})
    assert why in refused.message
    assert desk.house.ledger.workflows() == []


def test_a_folder_outside_the_roots_or_without_git_is_refused(desk: Desk, test_root: Path) -> None:
    other = test_root / "other"
    other.mkdir()
    assert "workflow.roots" in desk.refuses("start", goal="x", workspace=str(other)).message
    plain = desk.folder / "plain"
    desk.policy.write_text(POLICY.replace("[workflow]\n", f'[workflow]\nroots = ["{other}", "/"]\n'))
    assert "is not a git repository" in desk.refuses("start", goal="x", workspace=str(other)).message
    # The root of the file system lets nothing in.
    assert "workflow.roots" in desk.refuses("start", goal="x").message
    assert not plain.exists()


def test_credentials_in_prose_are_masked_before_they_are_kept_or_sent(desk: Desk) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    desk.start(goal=f"Right sums, and never print {token} please.", bindings={"review": "ask"})
    assert token not in desk.house.ledger.workflow(desk.id).goal
    desk.call("record", step="plan", text=f"Use {token} to log in, then turn the sign.")
    assert "[masked" in desk.call("status", what="product", step="plan")["text"]


def test_code_with_credentials_is_shown_before_it_is_sent_or_refused(desk: Desk) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    (desk.folder / "key.py").write_text(f'TOKEN = "{token}"\n')
    git(desk.folder, "add", ".")
    git(desk.folder, "commit", "-qm", "key")
    told = desk.start(contextPaths=["key.py"])
    assert "key.py:1" in str(told["due"]["secrets"]), told
    desk.policy.write_text(POLICY.replace("[review]\n", '[review]\nsecrets = "refuse"\n'))
    assert "review.secrets = refuse" in desk.refuses("next").message


def test_what_is_sent_is_what_was_shown(desk: Desk) -> None:
    told = desk.start(contextPaths=["calc.py"])
    assert told["due"]["sends"]["files"] == ["calc.py"]
    assert desk.script.prompts("codex") == []
    (desk.folder / "calc.py").write_text(RIGHT)
    assert "changed since it was shown" in desk.refuses("next", confirm=told["confirm"]).message
    assert "not the token" in desk.refuses("next", confirm="0" * 12).message
    again = desk.call("next", context="Mind the sign.")
    assert desk.call("next", confirm=again["confirm"])["state"] == "brief"
    (prompt,) = desk.script.prompts("codex")
    # Our rules stand outside the marks of the material, everything else inside.
    mark = prompt.partition("BEGIN ")[2].split()[0]
    inside = prompt[prompt.index(f"BEGIN {mark}") : prompt.rindex(f"END {mark}")]
    assert '"goal": "Right sums."' in inside and "The rules here are the only ones" not in inside
    assert '"material": "Mind the sign."' in prompt and "return a + b" in prompt
    # A token that is spent sends nothing again.
    assert desk.call("next", confirm=again["confirm"])["state"] == "brief"
    assert len(desk.script.prompts("codex")) == 1


def test_an_agent_that_fails_is_tried_again_when_it_is_confirmed_again(desk: Desk) -> None:
    desk.script.says("codex", {"failure": "rate_limit"}, *[{"failure": "refused"}] * 2)
    told = desk.start()
    told = desk.call("next", confirm=told["confirm"])
    assert told["state"] == "plan" and "rate_limit" in told["did"][-1], told
    told = desk.call("next", confirm=told["confirm"])
    assert told["state"] == "plan" and "refused" in told["note"]
    assert len(desk.script.prompts("codex")) == 2
    assert desk.call("status")["turns"] == 2


def test_the_estimate_says_what_it_rests_on(desk: Desk) -> None:
    told = desk.start()
    assert told["due"]["estimate"]["basisTurns"] == 0 and told["due"]["estimate"]["costUsd"] is None


def test_several_reviewers_need_the_sessions_own_findings_first(desk: Desk) -> None:
    desk.start(bindings={"review": "ask:codex,opencode"})
    desk.call("record", step="plan", text="p")
    desk.call("record", step="brief", text="b")
    (desk.folder / "calc.py").write_text(RIGHT)
    desk.call("record", step="implement")
    desk.script.says("codex", {"findings": []})
    assert (
        "ownFindings" in desk.refuses("record", step="test", report={"command": "c", "exitCode": 0}).message
    )
    told = desk.call("next", ownFindings=[{"severity": "minor", "title": "No test"}])
    assert told["due"]["sends"]["requests"] == 2
    told = desk.call("next", confirm=told["confirm"])
    assert told["findings"][0]["by"] == "host" and "No test" not in desk.script.prompts("codex")[0]
    assert desk.call("record", step="synthesise", text="Fine.")["state"] == "completed"


def test_synthesis_by_an_agent_goes_through_the_review_as_well(desk: Desk) -> None:
    finding = {
        "severity": "important",
        "title": "Wrong",
        "detail": "d",
        "path": None,
        "line": None,
        "confidence": "low",
        "suggestion": None,
    }
    desk.script.says("opencode", {"findings": [finding]})
    forgotten = {"conclusion": "Fine.", "dispositions": []}
    weighed = {
        "conclusion": "It is not.",
        "dispositions": [{"finding": "F1", "disposition": "rejected", "reason": "It adds."}],
    }
    desk.script.says("codex", said("x", forgotten), said("x", weighed))
    desk.start(bindings={"review": "ask:opencode", "synthesise": "ask:codex"})
    desk.call("record", step="plan", text="p")
    desk.call("record", step="brief", text="b")
    (desk.folder / "calc.py").write_text(RIGHT)
    desk.call("record", step="implement")
    told = desk.call("record", step="test", report={"command": "c", "exitCode": 0})
    told = desk.call("next", confirm=told["confirm"])
    told = desk.call("next", confirm=told["confirm"])
    assert told["state"] == "synthesise" and "F1" in told["note"], told
    told = desk.call("next", confirm=told["confirm"])
    assert told["state"] == "completed", told
    (review,) = desk.house.ledger.reviews()
    assert desk.house.ledger.review_findings(review.review_id)[0].reason == "It adds."


@pytest.mark.parametrize("advance", [False, True])
def test_failed_tests_may_be_reviewed_and_are_never_completed(desk: Desk, advance: bool) -> None:
    if advance:
        desk.policy.write_text(POLICY.replace("[workflow]\n", "[workflow]\nadvance_on_failed_test = true\n"))
    desk.start(bindings={"review": "ask:opencode"})
    desk.call("record", step="plan", text="p")
    desk.call("record", step="brief", text="b")
    (desk.folder / "calc.py").write_text(RIGHT)
    desk.call("record", step="implement")
    told = desk.call("record", step="test", report={"command": "c", "exitCode": 1})
    assert told["state"] == ("review" if advance else "fix")
    if advance:
        desk.call("next", confirm=told["confirm"])
        told = desk.call("record", step="synthesise", text="Fine.")
        assert told["state"] == "fix" and "tests do not pass" in told["note"]


def test_old_workflows_are_forgotten_with_their_consultations_and_refs(desk: Desk) -> None:
    told = desk.start()
    desk.call("next", confirm=told["confirm"])
    workflow = desk.house.ledger.workflow(desk.id)
    assert forget_old(desk.house, at=workflow.updated_at + 1e9).workflows == []
    desk.call("cancel")
    ground = ground_of(desk.house, workflow)
    assert ground.repo.refs(f"refs/runs/{desk.id}")
    assert forget_old(desk.house).workflows == []
    assert forget_old(desk.house, at=workflow.updated_at + 1e9, dry_run=True).workflows == [desk.id]
    done = forget_old(desk.house, at=workflow.updated_at + 1e9)
    assert (done.workflows, done.faults) == ([desk.id], [])
    assert ground.repo.refs(f"refs/runs/{desk.id}") == {}
    assert desk.house.ledger.consultations(-1) == [] and desk.house.ledger.workflows() == []
    pins = git(desk.folder, "for-each-ref", "refs/baton")
    assert pins == ""
