"""What became of reviewers' findings, added up; and reviews from a terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from baton.cli.main import baton
from baton.ledger.reviews import Score
from review.conftest import FINDING, Desk, git


def found(number: int, **more: Any) -> dict[str, Any]:
    return {**FINDING, "title": f"number {number}", "line": 2, **more}


def finalised(desk: Desk, dispositions: list[str], **arguments: Any) -> str:
    done = desk.reviewed(**arguments)
    given = [
        {"finding": f"F{number}", "disposition": disposition, "reason": "so"}
        for number, disposition in enumerate(dispositions, start=1)
    ]
    desk.review("finalise", done["reviewId"], dispositions=given)
    return str(done["reviewId"])


def scores(desk: Desk) -> dict[str, Score]:
    return {score.agent: score for score in desk.house.ledger.scorecard()}


def test_kept_rejected_and_open_are_counted_once_the_review_is_finalised(desk: Desk) -> None:
    desk.script.says("codex", {"findings": [found(n) for n in range(4)]})
    done = desk.reviewed()
    assert (scores(desk)["codex"].answered, scores(desk)["codex"].findings) == (1, 0)
    given = ["fixed", "accepted_risk", "rejected", "open"]
    desk.review(
        "finalise",
        done["reviewId"],
        dispositions=[
            {"finding": f"F{n}", "disposition": one, "reason": "so"} for n, one in enumerate(given, start=1)
        ],
    )
    score = scores(desk)["codex"]
    assert (score.asked, score.answered, score.findings) == (1, 1, 4)
    assert (score.kept, score.rejected, score.open) == (2, 1, 1)
    assert score.hit_rate is None
    assert score.sole_serious is None


def test_hit_rate_appears_from_ten_decided_findings(desk: Desk) -> None:
    desk.script.says("codex", {"findings": [found(n) for n in range(9)]}, {"findings": [found(9)]})
    finalised(desk, ["fixed"] * 6 + ["rejected"] * 3)
    assert scores(desk)["codex"].hit_rate is None
    finalised(desk, ["rejected"])
    assert scores(desk)["codex"].hit_rate == 0.6


def test_sole_serious_are_those_that_no_other_reviewer_had(desk: Desk) -> None:
    both, own = found(1), found(2, line=90, path="calc.py")
    rejected = found(3, line=60, path="calc.py")
    desk.script.says("codex", {"findings": [both, own, rejected, found(4, severity="minor", line=30)]})
    desk.script.says("claude", {"findings": [found(5, line=3)]})
    finalised(
        desk,
        ["fixed", "open", "rejected", "open", "fixed"],
        mode="deep",
        ownFindings=[],
        reviewers=["codex", "claude"],
    )
    assert {name: score.sole_serious for name, score in scores(desk).items()} == {"codex": 1, "claude": 0}


def test_unparsed_and_failed_answers_are_no_answers(desk: Desk) -> None:
    desk.script.says("codex", {"text": "No."})
    desk.script.says("claude", {"failure": "rate_limited"})
    desk.reviewed(mode="deep", ownFindings=[], reviewers=["codex", "claude"])
    card = scores(desk)
    assert (card["codex"].asked, card["codex"].answered, card["codex"].unparsed) == (1, 0, 1)
    assert (card["claude"].asked, card["claude"].answered, card["claude"].unparsed) == (1, 0, 0)


def test_reviewer_that_was_asked_again_counts_once_with_the_model_that_answered(desk: Desk) -> None:
    desk.script.says("codex", {"failure": "transport"}, {"findings": [], "model": "gpt-5.6-sol-2"})
    desk.review("finalise", desk.review("retry", desk.reviewed()["reviewId"])["reviewId"])
    (score,) = desk.house.ledger.scorecard()
    assert (score.model, score.asked, score.answered) == ("gpt-5.6-sol-2", 1, 1)


def test_rechecks_and_the_hosts_own_findings_do_not_count(desk: Desk) -> None:
    desk.script.says("codex", {"findings": [found(1)]})
    own = [{"severity": "critical", "title": "mine"}]
    name = finalised(desk, ["fixed", "open"], mode="deep", ownFindings=own, reviewers=["codex"])
    before = scores(desk)
    desk.run(desk.review("recheck", name, diffRef="main~1..work"))
    assert scores(desk) == before
    assert before["codex"].findings == 1


def terminal(*arguments: str, input: str = "") -> Any:
    return CliRunner().invoke(
        baton, list(arguments), input=input, standalone_mode=False, catch_exceptions=False
    )


def test_scorecard_in_the_terminal(desk: Desk) -> None:
    assert terminal("scorecard").output == "nothing was reviewed yet\n"
    desk.script.says("codex", {"findings": [found(n) for n in range(10)]})
    finalised(desk, ["fixed"] * 8 + ["rejected"] * 2)
    assert terminal("scorecard").output == (
        "codex (gpt-5.6-sol): asked 1, answered 1, unparsed 0; findings 10: kept 8, rejected 2, open 0, hit"
        " rate"
        " 80%; sole serious -\n"
    )
    (line,) = json.loads(terminal("scorecard", "--json").output)["reviewers"]
    assert (line["reviewer"], line["hitRate"], line["soleSerious"]) == ("codex", 0.8, None)


def test_review_can_be_read_and_finalised_in_the_terminal(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.script.says("codex", {"findings": [found(1, title="bad \x1b[31m red")]})
    name = desk.reviewed()["reviewId"]
    listed = terminal("review", "list").output
    assert name in listed
    assert "awaiting_synthesis" in listed
    shown = terminal("review", "show", name).output
    assert "F1 important calc.py:2" in shown
    assert "\x1b" not in shown
    told = json.loads(terminal("review", "finalise", name, "F1=rejected:It is meant so.", "--json").output)
    assert told["dispositions"] == {"rejected": 1}
    (step,) = json.loads(terminal("review", "show", name, "--what=history", "--json").output)["history"]
    assert step["reason"] == "It is meant so."


def test_everything_of_a_review_is_shown_in_the_terminal_however_long(desk: Desk) -> None:
    many = [found(n, severity="minor", detail="word " * 200) for n in range(60)]
    desk.script.says("codex", {"findings": many})
    name = desk.reviewed()["reviewId"]
    assert (
        f"more findings: `baton review show {name} --what findings`"
        in terminal("review", "show", name).output
    )
    shown = json.loads(terminal("review", "show", name, "--what=findings", "--json").output)
    assert [one["id"] for one in shown["findings"]] == [f"F{n}" for n in range(1, 61)]
    assert "nextOffset" not in shown


def test_terminal_says_how_to_send_code_with_a_credential(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk.folder)
    monkeypatch.setattr("baton.consult.service.ProgramLook", lambda: _everything)
    (desk.folder / "calc.py").write_text('password = "Quartz!481fxy"\n')
    git(desk.folder, "commit", "-qam", "credential")
    done = CliRunner().invoke(baton, ["review", "start", "Is it right?", "--diff=HEAD"], input="y\n")
    assert done.exit_code == 1
    assert "--send-secrets" in str(done.output) + str(done.exception)
    assert desk.house.ledger.consultations(-1) == []


def test_person_at_the_terminal_who_says_no_sends_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk.folder)
    monkeypatch.setattr("baton.consult.service.ProgramLook", lambda: _everything)
    done = CliRunner().invoke(baton, ["review", "start", "Is it right?", "--diff=main..work"], input="n\n")
    assert done.exit_code == 1
    assert "said no" in str(done.output) + str(done.exception)
    (review,) = desk.house.ledger.reviews(-1)
    assert review.state == "cancelled"
    assert desk.house.ledger.consultations(-1) == []


async def _everything(*_: Any) -> Any:
    from baton.consult.agents import Known

    return Known(None, "1.0", True)
