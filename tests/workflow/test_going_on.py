"""A workflow that goes on: answers that come late, reviews that fail, changes in between, a terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from baton.cli.review import review
from baton.cli.workflow import workflow
from baton.cli.workflow_text import table
from baton.contract.errors import BatonError, InvalidInput
from baton.contract.workflow import Step
from baton.workflow.words import TerminalWords
from consult.scripted import look
from consult.waiting import until
from workflow.conftest import Desk
from workflow.driven import RIGHT, said


def at_review(desk: Desk, reviewers: str = "ask:opencode") -> dict[str, Any]:
    """The session did everything up to the review, which is shown."""
    desk.start(bindings={"review": reviewers})
    desk.call("record", step="plan", text="p")
    desk.call("record", step="brief", text="b")
    (desk.folder / "calc.py").write_text(RIGHT)
    desk.call("record", step="implement")
    return desk.call("record", step="test", report={"command": "c", "exitCode": 0})


def test_a_review_that_failed_asks_the_same_again(desk: Desk) -> None:
    desk.script.says("opencode", {"failure": "rate_limit"}, {"findings": []})
    told = at_review(desk)
    told = desk.call("next", confirm=told["confirm"])
    assert told["state"] == "review" and told["due"]["asksAgain"] == ["opencode"], told
    assert desk.call("next", confirm=told["confirm"])["state"] == "synthesise"
    first, second = desk.script.prompts("opencode")
    assert first == second
    assert len(desk.house.ledger.reviews()) == 1
    assert desk.call("record", step="synthesise", text="Fine.")["state"] == "completed"


def test_cancelling_ends_a_review_at_work(desk: Desk) -> None:
    desk.script.says("opencode", {"hang": 1})
    told = at_review(desk)
    told = desk.call("next", confirm=told["confirm"], waitSeconds=0)
    assert told["state"] == "review" and told["working"]["step"] == "review", told
    until(lambda: len(desk.script.prompts("opencode")) == 1)
    assert desk.call("cancel")["state"] == "cancelled"
    (review,) = desk.house.ledger.reviews()
    asked = str(review.consultation_id)
    until(lambda: desk.house.ledger.consultation(asked).state.at_rest)
    assert desk.house.ledger.consultation(asked).state.value == "cancelled"


def test_an_answer_that_comes_late_is_taken_in_by_the_next_call(desk: Desk, test_root: Path) -> None:
    gate = test_root / "gate"
    desk.script.says("codex", {**said("Turn the sign."), "gate": str(gate)})
    told = desk.start()
    token = told["confirm"]
    told = desk.call("next", confirm=token, waitSeconds=0)
    assert told["working"]["step"] == "plan" and "confirm" not in told
    # The same call again, as a client does that gave up: nobody is asked again.
    again = desk.call("next", confirm=token, waitSeconds=0)
    assert again["working"] == told["working"]
    assert "at work" in desk.refuses("record", step="plan", text="x").message
    assert "at work" in desk.refuses("replan", step="research").message
    gate.write_text("")
    assert desk.call("next")["state"] == "brief"
    assert len(desk.script.prompts("codex")) == 1


def test_a_change_that_no_longer_fits_is_made_again(desk: Desk) -> None:
    told = desk.start()
    told = desk.call("next", confirm=told["confirm"])
    told = desk.call("record", step="brief", text="In calc.py.")
    assert desk.call("next", confirm=told["confirm"])["state"] == "apply"
    (desk.folder / "notes.txt").write_text("beside it\n")
    assert desk.call("next")["state"] == "apply"
    (desk.folder / "calc.py").write_text("def add(*numbers):\n    return sum(numbers)\n")
    told = desk.call("next")
    assert told["state"] == "implement" and "does not apply now" in told["did"][-1], told
    assert "does not apply now" in desk.call("status", what="prompt", step="implement")["text"]


def test_everything_of_a_step_can_be_read(desk: Desk) -> None:
    told = desk.start()
    told = desk.call("next", confirm=told["confirm"])
    told = desk.call("record", step="brief", text="In calc.py.")
    desk.call("next", confirm=told["confirm"])
    parts = {
        what: desk.call("status", what=what, step="implement")["text"]
        for what in ("product", "prompt", "patch", "output")
    }
    assert (
        parts["product"] == "Turned." and "return a + b" in parts["patch"] and "diff --git" in parts["output"]
    )
    assert "Implement the plan" in parts["prompt"] and "In calc.py." in parts["prompt"]
    steps = desk.call("status", what="steps")["steps"]
    assert [one["step"] for one in steps] == ["research", "plan", "brief", "implement"]
    assert desk.call("status", what="product", step="plan", limit=4)["nextOffset"] == 4
    assert "no diff" not in desk.call("status", what="diff")["text"]
    assert "there is no output" in desk.refuses("status", what="output", step="brief").message


def test_the_same_in_a_terminal(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk.folder)
    # As if every agent's program were installed; none is started.
    monkeypatch.setattr("baton.consult.service.ProgramLook", lambda: look)

    def baton(*arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(workflow, arguments, input=stdin)

    started = baton("start", "Right sums.", "--bind", "review=ask:opencode")
    (known,) = desk.house.ledger.workflows()
    name = known.workflow_id
    assert started.exit_code == 0, started.output
    assert f"next: `baton workflow record {name} plan --file FILE`" in started.output, started.output
    assert baton("record", name[:5], "plan", "--text", "p").exit_code == 0
    assert baton("record", name, "brief", "--text", "b").exit_code == 0
    (desk.folder / "calc.py").write_text(RIGHT)
    assert "context: the implement step is the session's own" in str(
        baton("next", name, "--context", "calc.py").exception
    )
    baton("record", name, "implement")
    told = baton("record", name, "test", "--test", "check", "--exit-status", "0")
    assert "passed (said by host)" in told.output, told.output
    listed = json.loads(baton("list", "--json").output)
    assert [one["state"] for one in listed] == ["review"]
    assert json.loads(baton("list", "--json", "--limit", str(10**30)).output) == listed
    assert f"`baton workflow next {name}` shows the review step and asks" in told.output
    shown = json.loads(baton("show", name, "--json").output)
    assert shown["goal"] == "Right sums."
    exported = json.loads(baton("export", name).output)
    assert exported["steps"][-1]["step"] == "review" and "token" not in exported["steps"][-1]
    changed = baton("replan", name, "--to", "plan", stdin="n\n")
    assert changed.exit_code == 1 and desk.house.ledger.workflow(name).state.value == "review"
    desk.add_policy("[workflow.spend]\nmax_turns_per_workflow = 7\n")
    moved = baton("replan", name, "--bind", "brief=host", stdin="n\n")
    assert "ceilings: 0.0 US dollars, 7 turns" in moved.output, moved.output
    changed = baton("replan", name, "--to", "plan", "--yes")
    assert changed.exit_code == 0 and desk.house.ledger.workflow(name).state.value == "plan"
    assert "cancelled" in baton("cancel", name).output


def test_an_answer_is_short_and_what_to_do_is_never_cut(desk: Desk) -> None:
    desk.script.says("codex", said("word " * 20_000), {"failure": "crash"})
    told = desk.start(goal="Right sums. " * 400)
    told = desk.call("next", confirm=told["confirm"])
    told = desk.call("record", step="brief", text="In calc.py. " * 5_000)
    shown = desk.call("status")
    for answer in (told, shown):
        assert len(json.dumps(answer)) < 3_000, answer
    assert told["next"].endswith(f"confirm={told['confirm']}")
    assert len(desk.call("status", what="product", step="plan", limit=30_000)["text"]) > 20_000


COMMAND = re.compile(r"`baton (?:workflow|review) ([^`]+)`")


@pytest.mark.parametrize("step", [*Step, None])
def test_what_a_terminal_is_told_to_type_is_a_command_that_there_is(step: Step | None) -> None:
    words = TerminalWords()
    told = [words.wait("w1"), words.cancel("w1"), words.attention("w1"), words.rest("w1"), words.look("w1")]
    told += [words.retry("r1", "claude")]
    if step is not None:
        told += [words.show("w1", step), words.again("w1", step), words.agree("w1", step, "secret")]
        told += [words.record("w1", step), words.take_over("w1", step), words.back("w1", step)]
    assert "secret" not in " ".join(told) and not re.search(r"\w=<|step=|moreRounds", " ".join(told))
    for line in told:
        assert COMMAND.search(line), line
    for typed in COMMAND.finditer(" ".join(told)):
        group = workflow if typed.group().startswith("`baton workflow") else review
        name, *arguments = typed.group(1).split()
        known = group.get_command(click.Context(group), name)
        assert known is not None, typed.group()
        values = ["0" if one == "NUMBER" else __file__ if one == "FILE" else one for one in arguments]
        known.make_context(name, values)


def test_steps_of_any_length_stand_in_columns() -> None:
    rows = [("1", "plan", "done", "host"), ("1000", "synthesise", "previewed", "ask " + "名前 (m), " * 20)]
    first, second = table(rows, None)
    assert first.index("host") == second.index("ask") == cell_len("  1000  synthesise  previewed  ")
    lines = list(table(rows, 60))
    assert lines[0] == first and len(lines) > 3
    assert all(cell_len(line) <= 60 or not line.isascii() for line in lines)
    assert all(line.startswith(" " * first.index("host")) for line in lines[2:])


def test_several_reviewers_can_be_asked_from_a_terminal(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baton.consult.service.ProgramLook", lambda: look)
    with pytest.raises(InvalidInput, match="ownFindings"):
        at_review(desk, "ask:opencode,claude")
    told = CliRunner().invoke(workflow, ["next", desk.id], input="n\n")
    assert told.exit_code == 0 and "due: review by ask opencode" in told.output, (told.output, told.exception)


def test_material_that_nobody_is_sent_is_refused(desk: Desk) -> None:
    bindings = {"review": "ask:opencode", "plan": "host"}
    refused = desk.refuses("start", goal="g", bindings=bindings, context="Mind the sign.").message
    assert refused == "context: the plan step is the session's own and sends nothing", refused
    assert desk.house.ledger.workflows() == []
    desk.start(bindings=bindings)
    assert "session's own" in desk.refuses("next", contextPaths=["calc.py"]).message


def test_material_given_with_the_start_goes_with_the_first_step_that_is_sent(desk: Desk) -> None:
    desk.script.says("codex", said("Turn the sign."))
    told = desk.start(context="Mind the sign.")
    assert told["due"]["step"] == "plan"
    desk.call("next", confirm=told["confirm"])
    assert "Mind the sign." in desk.script.prompts("codex")[0]


def test_material_for_a_review_waits_for_the_tests_that_come_first(desk: Desk) -> None:
    at_review(desk)
    assert "contextPaths: a review sends" in desk.refuses("next", contextPaths=["calc.py"]).message
    (desk.folder / "more.py").write_text("more = 1\n")
    told = desk.call("next", context="Mind the sign.")
    assert told["state"] == "test" and "context: not sent" in told["note"], told
    assert "session's own" in desk.refuses("next", context="Mind the sign.").message


def test_a_refusal_in_a_terminal_names_what_a_person_types(desk: Desk) -> None:
    desk.start(bindings={"review": "ask:opencode"})
    for words, told in (
        (("record", desk.id, "plan", "--commit", "x"), "--commit: plan does not take it; it takes --text"),
        (("record", desk.id, "plan"), "--text: the plan itself is needed"),
        (("replan", desk.id), "replan: name bindings to change, a step to go back to, or --more-rounds"),
        (("replan", desk.id, "--bind", "plan=ask:nobody"), "--bind plan: "),
    ):
        with pytest.raises(BatonError) as caught:
            workflow.main(list(words), standalone_mode=False)
        assert caught.value.message.startswith(told), caught.value.message
