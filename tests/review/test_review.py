"""A review from its plan to its end: what is sent, what comes back, and what must be answered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.contract.errors import InvalidInput, NoAgent, NotAllowed, SpendLimit, WrongState
from baton.review.confirm import Says
from consult.waiting import until
from review.conftest import FINDING, Desk, git
from review.scripted import never_starts, start


def size(*answers: dict[str, Any]) -> int:
    return len(json.dumps(answers, ensure_ascii=False).encode())


def test_three_calls_review_a_branch_in_five_kilobytes(desk: Desk) -> None:
    desk.script.says("codex", {"findings": [FINDING]})
    plan = desk.plan()
    done = desk.run(plan)
    assert done["state"] == "awaiting_synthesis"
    (found,) = done["findings"]
    assert (found["id"], found["place"], found["located"]) == ("F1", "calc.py:2", "changed")
    end = desk.review(
        "finalise",
        plan["reviewId"],
        dispositions=[{"finding": "F1", "disposition": "open"}],
        conclusion="mend it",
    )
    assert (end["state"], end["openSerious"], end["open"]) == ("finalised", 1, ["F1"])
    assert size(plan, done, end) <= 5_000


def test_plan_shows_everything_and_sends_nothing(desk: Desk) -> None:
    plan = desk.plan()
    assert desk.script.prompts("codex") == []
    assert desk.house.ledger.consultations(-1) == []
    assert plan["scope"]["from"] == git(desk.folder, "rev-parse", "main")[:12]
    assert plan["scope"]["to"] == git(desk.folder, "rev-parse", "work")[:12]
    assert plan["files"] == ["calc.py"]
    assert plan["requests"] == 1
    assert [one["reviewer"] for one in plan["reviewers"]] == ["codex"]
    assert plan["secrets"] == plan["suspects"] == []
    assert plan["estimatedCostUsd"] is None


def test_reviewer_gets_the_diff_and_nothing_of_the_machine(desk: Desk) -> None:
    desk.reviewed()
    (prompt,) = desk.script.prompts("codex")
    assert "-    return a + b\n+    return a - b\n" in prompt
    assert str(desk.folder) not in prompt


def test_deep_review_needs_own_findings_first_and_never_shows_them(desk: Desk) -> None:
    assert "ownFindings" in desk.refuses_plan(mode="deep").message
    own = [{"severity": "critical", "title": "Zanzibar is not a colour", "path": "calc.py", "line": 2}]
    done = desk.reviewed(mode="deep", ownFindings=own)
    assert sorted(done["reviewers"]) == ["claude", "codex", "opencode"]
    assert [one["by"] for one in done["findings"]] == ["host"]
    for agent in ("codex", "claude", "opencode"):
        assert "Zanzibar" not in desk.script.prompts(agent)[0]


def test_standard_review_has_one_reviewer(desk: Desk) -> None:
    assert "one" in desk.refuses_plan(reviewers=["codex", "claude"]).message
    assert [one["reviewer"] for one in desk.plan(reviewers=["claude"])["reviewers"]] == ["claude"]


def test_policy_names_the_reviewers_of_which_the_first_able_one_is_asked(desk: Desk) -> None:
    desk.add_policy('reviewers = ["copilot", "claude"]\n')
    assert [one["reviewer"] for one in desk.plan()["reviewers"]] == ["claude"]


def test_the_hosts_own_model_is_never_a_reviewer(desk: Desk) -> None:
    desk.policy.write_text(desk.policy.read_text().replace("gpt-5.6-sol", "gpt-6.2-sol"))
    assert isinstance(desk.refuses_plan(reviewers=["codex"]), NoAgent)


def test_switched_off_reviews_say_how_to_switch_them_on(desk: Desk) -> None:
    desk.policy.write_text(desk.policy.read_text().replace("[review]\nenabled = true", ""))
    error = desk.refuses_plan()
    assert isinstance(error, NotAllowed)
    assert "[review] enabled = true" in error.message


def test_text_that_is_not_kept_cannot_be_reviewed(desk: Desk) -> None:
    desk.policy.write_text(
        desk.policy.read_text().replace("[consult]\n", "[consult]\nstore_full_content = false\n")
    )
    assert "store_full_content" in desk.refuses_plan().message


# -- confirmation ----------------------------------------------------------------------------------


async def yes(_: str) -> Says:
    return Says.YES


async def no(_: str) -> Says:
    return Says.NO


def test_run_needs_the_token_where_nobody_can_be_asked(desk: Desk) -> None:
    plan = desk.plan()
    assert "confirm" in desk.refuses("run", plan["reviewId"]).message
    assert "confirm" in desk.refuses("run", plan["reviewId"], confirm="0" * 12).message
    assert desk.run(plan)["confirmedBy"] == "token"


def test_token_of_another_plan_does_not_fit(desk: Desk) -> None:
    one, other = desk.plan(), desk.plan(goal="Is it fast?")
    assert isinstance(desk.refuses("run", one["reviewId"], confirm=other["confirm"]), InvalidInput)


def test_person_who_says_yes_needs_no_token(desk: Desk) -> None:
    plan = desk.plan()
    assert desk.review("run", plan["reviewId"], person=yes)["confirmedBy"] == "person"


def test_person_who_says_no_ends_the_plan_also_against_its_token(desk: Desk) -> None:
    plan = desk.plan()
    with pytest.raises(NotAllowed):
        desk.review("run", plan["reviewId"], person=no, confirm=plan["confirm"])
    assert desk.review("status", plan["reviewId"])["state"] == "cancelled"
    assert isinstance(desk.refuses("run", plan["reviewId"], confirm=plan["confirm"]), WrongState)


def test_policy_can_demand_the_persons_own_word(desk: Desk) -> None:
    token = desk.plan()
    desk.add_policy('confirmation = "person"\n')
    plan = desk.plan()
    assert "confirm" not in plan
    assert isinstance(desk.refuses("run", token["reviewId"], confirm=token["confirm"]), NotAllowed)
    assert desk.review("run", plan["reviewId"], person=yes)["confirmedBy"] == "person"


def test_running_again_asks_nobody_again(desk: Desk) -> None:
    plan = desk.plan()
    desk.run(plan)
    assert desk.run(plan)["state"] == "awaiting_synthesis"
    assert len(desk.script.prompts("codex")) == 1


def test_plan_that_is_a_day_old_is_not_run(desk: Desk) -> None:
    plan = desk.plan()
    with desk.house.ledger.db.transaction() as db:
        db.execute("UPDATE reviews SET created_at = created_at - 90000")
    assert "day ago" in desk.refuses("run", plan["reviewId"], confirm=plan["confirm"]).message
    assert desk.review("status", plan["reviewId"])["state"] == "expired"


def test_policy_that_changed_since_voids_the_plan(desk: Desk) -> None:
    plan = desk.plan()
    desk.add_policy('checklist = ["a check that was not shown"]\n')
    assert "policy changed" in desk.refuses("run", plan["reviewId"], confirm=plan["confirm"]).message


# -- reviewers that fail ---------------------------------------------------------------------------


def test_unparsable_reviewer_is_asked_once_for_its_form_in_its_own_conversation(desk: Desk) -> None:
    desk.script.says("codex", {"text": "The sum is wrong in calc.py."}, {"findings": [FINDING]})
    done = desk.reviewed()
    assert [one["title"] for one in done["findings"]] == ["The sum is wrong"]
    assert desk.script.resumed("codex", 2) == "session-codex"
    assert "return a - b" not in desk.script.prompts("codex")[1]


def test_unparsable_twice_never_blocks_the_others_and_keeps_its_text(desk: Desk) -> None:
    desk.script.says("codex", {"text": "Prose alone."})
    desk.script.says("claude", {"findings": [FINDING]})
    done = desk.reviewed(mode="deep", ownFindings=[], reviewers=["codex", "claude"])
    assert done["state"] == "awaiting_synthesis"
    assert (done["reviewers"], done["unparsed"]) == (["claude"], ["codex"])
    assert len(desk.script.prompts("codex")) == 2
    text = desk.review("status", done["reviewId"], what="answer", reviewer="codex")["text"]
    assert "Prose alone." in text
    end = desk.review("finalise", done["reviewId"], dispositions=[{"finding": "F1", "disposition": "fixed"}])
    assert end["state"] == "finalised"


@pytest.mark.long
def test_unparsable_one_can_be_retried_with_the_question_as_approved(desk: Desk) -> None:
    desk.script.says("codex", {"text": "No."}, {"text": "No."}, {"findings": [FINDING]})
    done = desk.reviewed()
    assert done["unparsed"] == ["codex"]
    again = desk.review("retry", done["reviewId"], reviewer="codex")
    assert [one["id"] for one in again["findings"]] == ["F1"]
    first, _, third = desk.script.prompts("codex")
    assert first == third


def test_when_all_reviewers_fail_the_review_failed_and_can_be_retried(desk: Desk) -> None:
    desk.script.says("codex", {"failure": "not_logged_in"}, {"findings": []})
    done = desk.reviewed()
    assert (done["state"], "codex" in done["note"]) == ("failed", True)
    assert isinstance(desk.refuses("finalise", done["reviewId"]), WrongState)
    assert desk.review("retry", done["reviewId"])["state"] == "awaiting_synthesis"


def test_one_that_fails_does_not_keep_the_other_from_counting(desk: Desk) -> None:
    desk.script.says("codex", {"failure": "rate_limited"})
    desk.script.says("claude", {"findings": [FINDING]})
    done = desk.reviewed(mode="deep", ownFindings=[], reviewers=["codex", "claude"])
    assert done["reviewers"] == ["claude"]
    assert done["note"] == "without findings of codex"


@pytest.mark.long
def test_questions_of_a_review_have_a_ceiling(desk: Desk) -> None:
    desk.add_policy("max_turns = 2\n")
    desk.script.says("codex", {"text": "No."})
    done = desk.reviewed()
    assert done["unparsed"] == ["codex"]
    with pytest.raises(SpendLimit):
        desk.review("retry", done["reviewId"])


@pytest.mark.long
def test_cancelled_review_keeps_what_came_and_can_be_retried(desk: Desk) -> None:
    desk.script.says("codex", {"hang": 1}, {"findings": []})
    plan = desk.plan()
    running = desk.run(plan, waitSeconds=0)
    assert running["state"] == "running"
    until(lambda: len(desk.script.prompts("codex")) == 1)
    desk.house.ledger.ask_to_cancel(running["consultationId"])
    assert desk.review("status", plan["reviewId"])["state"] == "cancelled"
    assert desk.review("retry", plan["reviewId"])["state"] == "awaiting_synthesis"


def test_killed_before_the_first_question_goes_on_by_itself(desk: Desk) -> None:
    desk.starts = never_starts
    plan = desk.plan()
    desk.run(plan, waitSeconds=0)
    assert desk.script.prompts("codex") == []
    desk.starts = start
    assert desk.review("status", plan["reviewId"])["state"] == "awaiting_synthesis"
    assert len(desk.script.prompts("codex")) == 1


@pytest.mark.long
def test_killed_between_the_answer_and_the_repair_goes_on_by_itself(desk: Desk) -> None:
    desk.script.says("codex", {"text": "No."}, {"findings": [FINDING]})
    plan = desk.plan()
    running = desk.run(plan, waitSeconds=0)
    until(lambda: desk.house.ledger.consultation(running["consultationId"]).state.at_rest)
    desk.starts = never_starts
    desk.review("status", plan["reviewId"], waitSeconds=0)
    desk.starts = start
    done = desk.review("status", plan["reviewId"])
    assert [one["id"] for one in done["findings"]] == ["F1"]
    assert len(desk.script.prompts("codex")) == 2


# -- what must be answered -------------------------------------------------------------------------


def test_every_serious_finding_must_be_answered(desk: Desk) -> None:
    found = [
        FINDING,
        {**FINDING, "severity": "critical", "title": "b"},
        {**FINDING, "severity": "minor", "title": "c"},
    ]
    desk.script.says("codex", {"findings": found})
    name = desk.reviewed()["reviewId"]
    assert "F1, F2 have none (" in desk.refuses("finalise", name).message
    only = [{"finding": "F1", "disposition": "open"}]
    assert "F2" in desk.refuses("finalise", name, dispositions=only).message
    for disposition in ("rejected", "accepted_risk"):
        bare = [*only, {"finding": "F2", "disposition": disposition}]
        assert "reason" in desk.refuses("finalise", name, dispositions=bare).message
    assert (
        "F9"
        in desk.refuses("finalise", name, dispositions=[{"finding": "F9", "disposition": "open"}]).message
    )
    assert desk.review("status", name)["state"] == "awaiting_synthesis"
    assert desk.review("status", name, what="history")["history"] == []


def test_dispositions_have_a_history(desk: Desk) -> None:
    desk.script.says("codex", {"findings": [FINDING]})
    name = desk.reviewed()["reviewId"]
    desk.review("finalise", name, dispositions=[{"finding": "F1", "disposition": "open"}])
    desk.review(
        "finalise",
        name,
        dispositions=[{"finding": "F1", "disposition": "rejected", "reason": "It is meant so."}],
    )
    steps = desk.review("status", name, what="history")["history"]
    assert [(one["disposition"], one["reason"]) for one in steps] == [
        ("open", None),
        ("rejected", "It is meant so."),
    ]


def test_host_can_add_what_it_read_itself(desk: Desk) -> None:
    name = desk.reviewed()["reviewId"]
    more = [{"severity": "important", "title": "Seen in the text", "path": "calc.py"}]
    assert "F1" in desk.refuses("finalise", name, ownFindings=more).message
    end = desk.review(
        "finalise", name, ownFindings=more, dispositions=[{"finding": "F1", "disposition": "fixed"}]
    )
    assert end["openSerious"] == 0


# -- recheck ---------------------------------------------------------------------------------------


def fixed_once(desk: Desk) -> str:
    """A finalised review with an open finding, and a fix on the branch."""
    desk.script.says("codex", {"findings": [FINDING]})
    name = desk.reviewed()["reviewId"]
    desk.review("finalise", name, dispositions=[{"finding": "F1", "disposition": "open"}])
    (desk.folder / "calc.py").write_text("def add(a, b):\n    return a + b + 0\n")
    git(desk.folder, "commit", "-qam", "fix")
    return str(name)


def test_recheck_shows_the_earlier_findings_and_takes_gone_for_fixed(desk: Desk) -> None:
    name = fixed_once(desk)
    desk.script.says("codex", {"earlier": [{"finding": "F1", "status": "gone", "note": "it adds"}]})
    plan = desk.review("recheck", name)
    done = desk.run(plan)
    assert done["parent"] == name
    assert done["openSerious"] == 0
    assert "F1 important calc.py:2: The sum is wrong" in desk.script.prompts("codex")[-1]
    (step,) = desk.review("status", plan["reviewId"], what="history")["history"]
    assert (step["disposition"], step["by"]) == ("fixed", "recheck")


@pytest.mark.long
def test_finding_that_is_still_there_must_be_answered_again(desk: Desk) -> None:
    name = fixed_once(desk)
    desk.script.says("codex", {"earlier": [{"finding": "F1", "status": "still", "note": None}]})
    done = desk.run(desk.review("recheck", name))
    assert (done["findings"][0]["carried"], done["openSerious"]) == ("F1", 1)
    assert "F1 has none (" in desk.refuses("finalise", done["reviewId"]).message


def test_recheck_of_unchanged_commits_is_refused(desk: Desk) -> None:
    desk.script.says("codex", {"findings": [FINDING]})
    name = desk.reviewed()["reviewId"]
    assert "finalise" in desk.refuses("recheck", name).message
    desk.review("finalise", name, dispositions=[{"finding": "F1", "disposition": "open"}])
    assert "same commits" in desk.refuses("recheck", name).message


def test_fix_rounds_have_a_cap(desk: Desk) -> None:
    desk.add_policy("max_fix_rounds = 0\n")
    assert "max_fix_rounds" in desk.refuses("recheck", fixed_once(desk)).message


# -- the rest of the plan --------------------------------------------------------------------------


def test_checklist_and_persona_reach_every_reviewer(desk: Desk) -> None:
    desk.add_policy('checklist = ["the same mistake beside the mended one"]\n')
    desk.reviewed(persona="security")
    (prompt,) = desk.script.prompts("codex")
    assert "Check especially for:\n- the same mistake beside the mended one" in prompt
    assert "Read as an attacker would" in prompt
    assert "skeptic" in desk.refuses_plan(persona="skeptik").message


def test_escalation_suggests_a_deep_review(desk: Desk) -> None:
    desk.add_policy('escalate = ["calc*"]\n')
    assert desk.plan()["escalate"] == {"paths": ["calc.py"], "suggestion": "mode deep"}
    assert "escalate" not in desk.plan(mode="deep", ownFindings=[])


def test_many_findings_are_shown_serious_first_and_all_can_be_read(desk: Desk) -> None:
    found = [{**FINDING, "severity": "minor", "title": f"small {n}", "detail": "d" * 500} for n in range(60)]
    desk.script.says("codex", {"findings": [*found, {**FINDING, "severity": "critical", "title": "big"}]})
    done = desk.reviewed()
    assert done["findings"][0]["title"] == "big"
    assert size(done) <= 2_600
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        part = desk.review("status", done["reviewId"], what="findings", offset=offset)
        seen += [one["id"] for one in part["findings"]]
        offset = part.get("nextOffset")
    assert seen == [f"F{n}" for n in range(1, 62)]
