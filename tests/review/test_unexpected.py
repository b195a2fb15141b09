"""Names, numbers and texts that nobody expects: each is read as what it is, or refused in one line."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.contract.errors import NotAllowed
from baton.contract.review import ReviewState
from baton.review import confirm, service
from baton.review.confirm import Says
from files_with import files_with
from review.conftest import FINDING, Desk, git


def token() -> str:
    """Looks like one of GitHub's; made up here."""
    return "ghp_" + "".join(
        secrets.choice("abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(36)
    )


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"diffRef": None, "paths": ["~nobody-of-that-name/x"]}, "~nobody-of-that-name/x"),
        ({"repository": "~nobody-of-that-name/x"}, "not an absolute path"),
        ({"paths": [""]}, "must not be empty"),
        ({"repository": " "}, "must not be empty"),
        ({"reviewers": ["nobody"]}, "reviewers: no agent 'nobody'"),
        ({"diffRef": "x" * 5_000}, "longer than"),
        ({"paths": ["x" * 5_000]}, "longer than"),
    ],
)
def test_name_that_is_none_is_refused(desk: Desk, arguments: dict[str, Any], said: str) -> None:
    message = desk.refuses_plan(**arguments).message
    assert said in message
    assert len(message) < 500


@pytest.mark.parametrize("root", ["~nobody-of-that-name/a", "sub"])
def test_root_of_the_policy_that_is_no_place_is_named(desk: Desk, root: str) -> None:
    desk.add_policy(f'roots = ["{root}"]\n')
    assert f"review.roots: '{root}'" in desk.refuses_plan().message


@pytest.mark.parametrize("what", ["findings", "history", "material"])
def test_offset_beyond_everything_shows_nothing(desk: Desk, what: str) -> None:
    assert desk.review("status", desk.plan()["reviewId"], what=what, offset=10**30)[what] == []


def test_line_that_no_file_has_is_refused_or_left_out(desk: Desk) -> None:
    own = {"severity": "minor", "title": "t", "path": "calc.py"}
    deep = {"mode": "deep", "reviewers": ["codex"]}
    assert "line" in desk.refuses_plan(**deep, ownFindings=[{**own, "line": 10**30}]).message
    plan = desk.plan(**deep, ownFindings=[{**own, "path": "calc.py:" + "9" * 30}])
    (found,) = desk.review("status", plan["reviewId"], what="findings")["findings"]
    assert found["place"] == "calc.py"


def test_work_tree_that_is_elsewhere_is_refused(desk: Desk, test_root: Path) -> None:
    (test_root / "elsewhere").mkdir()
    git(desk.folder, "config", "core.worktree", str(test_root / "elsewhere"))
    assert "not in the work tree" in desk.refuses_plan().message


def test_plan_says_when_a_run_would_be_refused_for_its_cost(desk: Desk) -> None:
    desk.add_policy("[consult.spend]\nmax_turns_per_day = 1\n")
    assert "notes" not in desk.plan()
    desk.reviewed()
    plan = desk.plan()
    (note,) = plan["notes"]
    assert note.startswith("as things are, a run is refused: ")
    assert note.endswith(desk.refuses("run", plan["reviewId"], confirm=plan["confirm"]).message)


# -- names of files --------------------------------------------------------------------------------

NAMES = [b"a\nb.py", b'q"uote.py', b"--output=x", b"\xff\xfe.py", b"tab\tx", b" lead", b"trail ", b"b/a.py"]
NAMES += [b"back\\slash", "ü.py".encode(), b"a b/x +++ b.py", b"@@ -1 +1 @@"]


def test_findings_are_located_in_files_of_any_name(desk: Desk) -> None:
    for name in NAMES:
        path = Path(os.fsdecode(os.path.join(os.fsencode(desk.folder), name)))  # noqa: PTH118
        path.parent.mkdir(exist_ok=True)
        path.write_text("one\ntwo\n")
    git(desk.folder, "add", "-A")
    git(desk.folder, "commit", "-qm", "names")
    plan = desk.plan(diffRef="HEAD")
    assert sorted(plan["files"]) == sorted(name.decode("utf-8", "replace") for name in NAMES)
    desk.script.says("codex", {"findings": [{**FINDING, "path": name} for name in plan["files"]]})
    desk.run(plan)
    found = desk.review("status", plan["reviewId"], what="findings", limit=30_000)["findings"]
    assert {one["located"] for one in found} == {"changed"}
    assert len(found) == len(NAMES)


def test_name_of_a_file_makes_no_line_of_its_own_in_the_question_to_the_person(desk: Desk) -> None:
    (desk.folder / "a\nGoal: nothing \x1b[2K\u202e.md").write_text("x\n")
    plan = desk.plan(diffRef=None, paths=["a\nGoal: nothing \x1b[2K\u202e.md"])
    asked = []

    async def person(text: str) -> Says:
        asked.append(text)
        return Says.NO

    with pytest.raises(NotAllowed):
        desk.review("run", plan["reviewId"], person)
    assert [line.split(":")[0] for line in asked[0].splitlines()] == [
        "Send 2 bytes of material to codex for review?",
        "Goal",
        "Material",
    ]
    assert asked[0].replace("\n", "").isprintable()


def test_person_is_told_the_commits(desk: Desk) -> None:
    plan = desk.plan()
    question = confirm.question_to_person(desk.house.ledger.review(plan["reviewId"]))
    scope = plan["scope"]
    assert f"Diff: main..work, from {scope['from']} to {scope['to']}" in question.splitlines()


def test_files_whose_content_is_not_sent_are_named(desk: Desk) -> None:
    (desk.folder / ".git" / "info" / "attributes").write_text("*.py -diff\n")
    plan = desk.plan()
    assert plan["files"] == ["calc.py"]
    assert plan["notes"] == ["not sent, binary or called so by attributes: calc.py"]


def test_change_of_a_mode_touches_what_calls_for_a_deep_review(desk: Desk) -> None:
    desk.add_policy('escalate = ["calc.py"]\n')
    (desk.folder / "calc.py").chmod(0o755)
    git(desk.folder, "commit", "-qam", "mode")
    assert desk.plan(diffRef="HEAD")["escalate"]["paths"] == ["calc.py"]


# -- credentials where nobody puts one -------------------------------------------------------------


def test_credential_in_the_name_of_a_file_holds_it_back_and_is_not_repeated(desk: Desk) -> None:
    name = f"notes-{token()}.md"
    (desk.folder / name).write_text("x\n")
    plan = desk.plan(diffRef=None, paths=[name])
    assert plan["secrets"] == ["notes-[masked: GitHub token].md GitHub token in its name"]
    assert name not in str(plan)
    assert "credentials" in desk.refuses("run", plan["reviewId"], confirm=plan["confirm"]).message
    git(desk.folder, "add", ".")
    git(desk.folder, "commit", "-qm", "name")
    plan = desk.plan(diffRef="HEAD")
    assert plan["secrets"]
    assert name not in str(plan)


def test_credential_in_what_the_session_writes_is_masked_before_it_is_written_down(desk: Desk) -> None:
    secret = token()
    own = {"severity": "important", "title": f"leaks {secret}", "detail": f"It is {secret}."}
    plan = desk.plan(mode="deep", reviewers=["codex"], ownFindings=[own])
    assert plan["masked"] == ["GitHub token"] * 2
    desk.run(plan)
    answer = {"finding": "F1", "disposition": "rejected", "reason": f"{secret} is old"}
    done = desk.review("finalise", plan["reviewId"], dispositions=[answer], conclusion=f"revoke {secret}")
    assert done["masked"] == ["GitHub token"] * 2
    assert files_with(desk.house.state.root, secret) == []


def test_what_is_masked_in_a_persona_is_told(desk: Desk) -> None:
    desk.add_policy(f'[consult.personas]\nstrict = "Be strict. Key {token()}."\n')
    assert desk.plan(persona="strict")["masked"] == ["GitHub token"]


# -- two at once -----------------------------------------------------------------------------------


def at_the_last_moment(monkeypatch: pytest.MonkeyPatch, name: str, first: Callable[[], object]) -> None:
    """Have another session's call come between what the next one looked at and what it writes."""
    real = getattr(service, name)

    def late(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(service, name, real)
        first()
        return real(*arguments, **named)

    monkeypatch.setattr(service, name, late)


def half_parsed(desk: Desk) -> str:
    """A review that can be finalised and retried: one reviewer's findings are missing."""
    desk.script.says("codex", {"findings": []})
    desk.script.says("claude", {"failure": "transport"}, {"findings": [FINDING]})
    done = desk.reviewed(mode="deep", reviewers=["codex", "claude"], ownFindings=[])
    return str(done["reviewId"])


def test_review_that_is_asked_again_meanwhile_is_not_finalised(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = half_parsed(desk)
    at_the_last_moment(monkeypatch, "masked_findings", lambda: desk.review("retry", name, waitSeconds=0))
    assert "is running" in desk.refuses("finalise", name).message


def test_review_that_is_finalised_meanwhile_is_not_asked_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = half_parsed(desk)
    at_the_last_moment(monkeypatch, "once_more", lambda: desk.review("finalise", name))
    assert "is finalised" in desk.refuses("retry", name).message
    assert desk.house.ledger.review(name).state is ReviewState.FINALISED


def test_fix_that_only_the_session_claims_is_looked_at_in_the_next_recheck(desk: Desk) -> None:
    def rechecked(text: str) -> dict[str, Any]:
        (desk.folder / "calc.py").write_text(text)
        git(desk.folder, "commit", "-qam", text)
        return desk.review("recheck", name)

    desk.script.says("codex", {"findings": [FINDING]})
    name = desk.reviewed()["reviewId"]
    for said in ("still", "gone"):
        if not desk.house.ledger.review_findings(name)[0].answered:
            desk.review("finalise", name, dispositions=[{"finding": "F1", "disposition": "fixed"}])
        desk.script.says("codex", {"earlier": [{"finding": "F1", "status": said, "note": None}]})
        name = desk.run(rechecked(f"# {said}\n"))["reviewId"]
        assert FINDING["title"] in desk.script.prompts("codex")[-1]
    desk.review("finalise", name)
    desk.run(rechecked("# once more\n"))
    assert FINDING["title"] not in desk.script.prompts("codex")[-1]
