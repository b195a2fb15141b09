"""The full server's prompts, resources and completions about other agents, as a client meets them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.contract.consult import Answer, SourceMode, TurnState
from baton.engine.house import House
from baton.ledger.consult_records import ConsultationRecord, ConsultTurnRecord
from tools.client import Client

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def client(test_root: Path, own_home: Path) -> Iterator[Client]:
    policy = own_home / ".codex" / "baton" / "policy.toml"
    policy.parent.mkdir()
    policy.write_text('[consult]\nenabled = true\n[consult.agents.claude]\ncommand = "/nowhere/claude"\n')
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT / "server")}
    with Client([sys.executable, "-B", "-m", "baton.tools.server"], cwd=test_root, env=env) as started:
        started.greet()
        yield started


def _record() -> str:
    turn = ConsultTurnRecord(
        consultation_id="cabcdefgh",
        number=0,
        round=0,
        agent="claude",
        runtime="claude",
        capability="review",
        source_mode=SourceMode.AUTO,
        sees="given",
        why="asked for by name",
        question="Is it?",
    )
    with House.open() as house:
        (made,) = house.ledger.begin_consultation(ConsultationRecord(consultation_id="cabcdefgh"), [turn])
        house.ledger.end_consult_turn(made.turn, state=TurnState.ANSWERED, answer=Answer(text="It is."))
        house.ledger.settle_consultation("cabcdefgh")
    return "cabcdefgh"


def test_prompt_is_text_that_asks_nobody(client: Client) -> None:
    arguments = {"question": "Is it right?", "agent": "claude"}
    found = client.ask(1, "prompts/get", {"name": "second-opinion", "arguments": arguments})["result"]
    (message,) = found["messages"]
    assert "consult" in message["content"]["text"] and '["claude"]' in message["content"]["text"]
    with House.open() as house:
        assert house.ledger.consultations() == []


def test_unknown_prompt_and_resource_are_errors_of_one_line(client: Client) -> None:
    for number, (method, params) in enumerate(
        [
            ("prompts/get", {"name": "nothing"}),
            ("resources/read", {"uri": "baton://consultation/cnothing"}),
            ("resources/read", {"uri": "file:///etc/passwd"}),
        ]
    ):
        error = client.ask(number + 1, method, params)["error"]
        assert error["message"] and len(error["message"].splitlines()) == 1


def test_record_is_a_resource_and_its_id_is_completed(client: Client) -> None:
    name = _record()
    uri = f"baton://consultation/{name}"
    (content,) = client.ask(1, "resources/read", {"uri": uri})["result"]["contents"]
    told = json.loads(content["text"])
    assert told["turns"][0]["answer"]["text"] == "It is." and told["costUsd"] is None
    reference = {"type": "ref/resource", "uri": "baton://consultation/{id}"}
    asked = {"ref": reference, "argument": {"name": "id", "value": "cab"}}
    assert client.ask(2, "completion/complete", asked)["result"]["completion"]["values"] == [name]


def test_agents_are_completed(client: Client) -> None:
    asked = {
        "ref": {"type": "ref/prompt", "name": "second-opinion"},
        "argument": {"name": "agent", "value": "c"},
    }
    values = client.ask(1, "completion/complete", asked)["result"]["completion"]["values"]
    assert values == ["claude", "codex", "copilot"]


def test_refusal_is_an_error_of_the_tool_with_its_reason(client: Client) -> None:
    result = client.call(1, "consult", {"question": "Is it?", "targets": ["claude"]})
    assert result["isError"] and result["structuredContent"]["error"] == "no_agent"
    assert "/nowhere/claude" in result["structuredContent"]["message"]
