"""What was asked can be read, found, counted and forgotten, by the tool and in the terminal."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from baton.cli.main import baton
from baton.consult.strengths import failure_rate, worth_a_look
from baton.contract.errors import InvalidInput, NotFound
from baton.ledger.consultations import Strength
from baton.process.tree import processes_with_marker
from baton.tools.consult_extras import completions, prompt_text, resource
from baton.tools.services import SessionService
from consult.conftest import Desk, scripted_question
from consult.waiting import until

CLAUDE = {"targets": ["claude"]}


def _told(*arguments: str, status: int = 0, input: str | None = None) -> str:
    result = CliRunner().invoke(baton, list(arguments), input=input)
    assert result.exit_code == status, result.output
    return result.output


@pytest.fixture
def asked(desk: Desk) -> str:
    """The id of a consultation with two rounds."""
    does = {"answer": "The cache was sharded twice.", "uncertainties": ["load"], "cost": 0.25}
    name = str(desk.script(does, capability="review", **CLAUDE)["consultationId"])
    desk.consult("Is that certain?", followUp=name)
    until(lambda: processes_with_marker("BATON_RUN", name) == ())
    return name


def test_every_part_of_a_turn_can_be_read(desk: Desk, asked: str) -> None:
    answer = desk.records("read", id=asked, what="answer", turn=1)["text"]
    assert "The cache was sharded twice." in answer and "Uncertainties:\n- load" in answer
    assert desk.records("read", id=asked, what="question")["text"] == "Is that certain?"
    assert "second opinion" in desk.records("read", id=asked, what="prompt", turn=1)["text"]
    assert "The cache" in desk.records("read", id=asked, what="raw", turn=1)["text"]
    assert desk.records("read", id=asked, what="errors", turn=1)["text"] == ""
    summary = desk.records("read", id=asked)
    assert [one["turn"] for one in summary["answers"]] == [1, 2]
    assert desk.records("read", id=asked, turn=1)["costUsd"] == 0.25


def test_long_text_is_read_in_windows_that_join_to_the_whole(desk: Desk, asked: str) -> None:
    whole, offset = "", 0
    while True:
        window = desk.records("read", id=asked, what="prompt", turn=1, offset=offset, limit=200)
        whole += window["text"]
        if "nextOffset" not in window:
            break
        offset = window["nextOffset"]
    assert whole == desk.records("read", id=asked, what="prompt", turn=1, limit=30_000)["text"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"action": "read"}, InvalidInput),
        ({"action": "wait"}, InvalidInput),
        ({"action": "search"}, InvalidInput),
        ({"action": "read", "id": "cnone"}, NotFound),
        ({"action": "erase"}, InvalidInput),
    ],
)
def test_bad_request_is_one_line(desk: Desk, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        desk.records(**arguments)
    assert len(str(caught.value).splitlines()) == 1


def test_turn_that_there_is_none_of_is_said(desk: Desk, asked: str) -> None:
    with pytest.raises(NotFound, match="there are 2"):
        desk.records("read", id=asked, turn=9)


def test_list_goes_on_where_it_ended(desk: Desk) -> None:
    names = [desk.consult(f"Number {n}?", **CLAUDE)["consultationId"] for n in range(3)]
    seen: list[str] = []
    offset = 0
    while len(seen) < 3:
        window = desk.records("list", offset=offset, limit=1)
        seen += [one["id"] for one in window["consultations"]]
        offset = window.get("nextOffset", offset)
    assert sorted(seen) == sorted(names)


def test_search_names_who_said_it(desk: Desk, asked: str) -> None:
    (hit,) = desk.records("search", query="shard")["hits"]
    assert (hit["id"], hit["turn"], hit["agent"]) == (asked, 1, "claude")
    assert "«sharded»" in hit["excerpt"]


def test_agents_are_told_with_why_they_cannot_be_asked(desk: Desk) -> None:
    told = desk.records("agents")
    by_name = {agent["agent"]: agent for agent in told["agents"]}
    assert told["host"] == {"runtime": "codex", "models": ["gpt-6.2-sol"]}
    assert by_name["claude"]["canBeAsked"] and by_name["codex"]["sees"] == "repository"
    assert "switched off" in by_name["copilot"]["why"]


def test_deleting_needs_the_token_of_what_is_there_now(desk: Desk, asked: str) -> None:
    first = desk.records("delete", id=asked)
    assert first["turns"] == 2 and "confirm" in first["next"]
    with pytest.raises(InvalidInput, match="token"):
        desk.records("delete", id=asked, confirm="guess")
    desk.consult("Once more?", followUp=asked)
    with pytest.raises(InvalidInput, match="token"):
        desk.records("delete", id=asked, confirm=first["confirm"])
    again = desk.records("delete", id=asked)["confirm"]
    assert desk.records("delete", id=asked, confirm=again)["did"] == "deleted"
    with pytest.raises(NotFound):
        desk.records("read", id=asked)
    assert desk.records("search", query="sharded") == {"hits": []}
    assert list(desk.house.artifacts.all()) == []
    assert not (desk.house.state.root / "consult" / asked).exists()


def test_history_search_export_and_strengths_in_the_terminal(desk: Desk, asked: str) -> None:
    line = _told("history")
    assert asked in line and "claude" in line and "cost unknown" in line
    assert json.loads(_told("history", "--json"))[0]["costUsd"] is None
    assert f"{asked} turn 1" in _told("search", "sharded", "cache")
    (hit,) = json.loads(_told("search", "--json", "twice"))
    assert (hit["id"], hit["turn"], hit["agent"]) == (asked, 1, "claude")
    assert set(hit) == {"id", "turn", "agent", "model", "at", "excerpt"}
    assert _told("search", "nowhere") == "nothing found\n"
    exported = json.loads(_told("export", asked[:5], "--prompts"))
    assert exported["turns"][0]["answer"]["text"] == "The cache was sharded twice."
    assert "second opinion" in exported["turns"][0]["prompt"]
    assert "session-1" not in json.dumps(exported)
    rows = json.loads(_told("strengths", "--json"))["rows"]
    assert {(row["capability"], row["asked"], row["costUsd"]) for row in rows} == {
        ("review", 1, 0.25),
        ("reasoning", 1, None),
    }
    assert {row["commonestFailure"] for row in rows} == {None}
    assert not [key for row in rows for key in row if "_" in key]
    assert "cost unknown" in _told("strengths")


def test_forgetting_in_the_terminal_asks_first(desk: Desk, asked: str) -> None:
    assert "forget" in _told("history", "--delete", asked, input="n\n", status=130)
    assert asked in _told("history")
    assert f"forgot {asked}" in _told("history", "--delete", asked, "--yes")
    assert _told("history") == "no consultations yet\n"


def test_what_an_agent_said_does_nothing_to_the_terminal(desk: Desk) -> None:
    desk.script({"answer": "\x1b[2J wiped \u202e out"}, **CLAUDE)
    assert "\x1b" not in _told("search", "wiped") and "\u202e" not in _told("search", "wiped")


def _row(agent: str, asked: int, failed: int, seconds: float) -> Strength:
    return Strength("coding", agent, None, asked, asked - failed, failed, seconds, 0.0, 0, "rate_limit")


def test_little_is_concluded_from_little() -> None:
    assert failure_rate(_row("a", 4, 4, 1)) is None
    assert worth_a_look([_row("a", 4, 4, 1), _row("b", 4, 0, 99)]) == []


def test_what_is_worth_a_look() -> None:
    (failing,) = worth_a_look([_row("a", 10, 3, 5)])
    assert "a failed 3 of 10 coding questions, most often rate_limit" in failing
    (slow,) = worth_a_look([_row("fast", 10, 0, 5), _row("slow", 10, 0, 10)])
    assert slow.startswith("slow takes 10 s") and "fast 5 s" in slow
    assert worth_a_look([_row("fast", 10, 2, 5), _row("slow", 10, 0, 10)]) == []


def test_resource_is_the_record_and_ids_and_names_are_completed(desk: Desk, asked: str) -> None:
    async def look() -> tuple[dict[str, Any], list[list[str]]]:
        service = SessionService()
        try:
            found = resource(f"baton://consultation/{asked}", service, {"consult"})
            begun = [("id", asked[:3]), ("agent", "cl"), ("agent", "copilot"), ("persona", "s"), ("x", "")]
            return found, [completions(argument, value, service) for argument, value in begun]
        finally:
            service.close()

    found, completed = anyio.run(look)
    assert found["consultationId"] == asked and len(found["turns"]) == 2
    assert completed == [[asked], ["claude"], [], ["security", "simplifier", "skeptic"], []]


def test_prompt_quotes_what_it_is_given() -> None:
    text = prompt_text("second-opinion", {"question": "Is it?", "agent": 'a"] ignore', "persona": "skeptic"})
    assert r'targets ["a\"] ignore"]' in text and 'persona "skeptic"' in text and "Is it?" in text
    assert "bothSides" in prompt_text("both-sides", {})
    assert '"lost words"' in prompt_text("recall", {"words": "lost words"})


def test_question_may_hold_anything(desk: Desk) -> None:
    odd = scripted_question({"answer": "fine"}) + " \u2028 \U0001f600 END material \\ud800"
    assert desk.consult("\u202e\x07 " + odd, **CLAUDE)["state"] == "answered"
