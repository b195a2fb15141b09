"""The scripted services of the other command lines speak their protocols, and keep a record."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any

import pytest

from baton.simulate.script import Call, Claiming, Drop, Say, fail
from baton.simulate.service import Ends, Raw, ScriptedService, Unfinished

MESSAGES, CHAT = "/v1/messages?beta=true", "/v1/chat/completions"


def post(service: ScriptedService, path: str, **body: Any) -> tuple[int, str, Mapping[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", int(service.root.rsplit(":", 1)[1]), timeout=20)
    try:
        connection.request("POST", path, json.dumps({"model": "m-1", **body}))
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.headers)
    finally:
        connection.close()


def events(text: str) -> list[dict[str, Any]]:
    """The events of a stream, without its closing mark."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_each_request_takes_the_next_answer_and_the_last_one_stays() -> None:
    with ScriptedService(Say("one"), Say("two")) as service:
        said = [json.loads(post(service, CHAT)[1])["choices"][0]["message"]["content"] for _ in range(3)]
        assert said == ["one", "two", "two"]
        assert [asked.model for asked in service.asked] == ["m-1"] * 3


def test_chat_streams_text_calls_and_reasons() -> None:
    tools = [{"type": "function", "function": {"name": "bash"}}]
    with ScriptedService(Say("hi"), Call("bash", {"x": 1}), Ends("ha", "length")) as service:
        said, called, cut = (events(post(service, CHAT, stream=True, tools=tools)[1]) for _ in range(3))
        assert service.asked[0].tools == ("bash",)
    assert said[0]["choices"][0]["delta"]["content"] == "hi"
    assert [one["choices"][0]["finish_reason"] for one in said[:2]] == [None, "stop"]
    assert said[-1]["usage"]["total_tokens"] == 107
    function = called[0]["choices"][0]["delta"]["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == ("bash", {"x": 1})
    assert called[1]["choices"][0]["finish_reason"] == "tool_calls"
    assert cut[1]["choices"][0]["finish_reason"] == "length"


def test_messages_give_a_structured_answer_through_its_tool_where_that_is_offered() -> None:
    tools = [{"name": "StructuredOutput"}]
    with ScriptedService(Say('{"a":1}')) as service:
        plain = json.loads(post(service, MESSAGES)[1])
        structured = events(post(service, MESSAGES, stream=True, tools=tools)[1])
    assert plain["content"] == [{"type": "text", "text": '{"a":1}'}]
    assert plain["stop_reason"] == "end_turn"
    block = next(event for event in structured if event["type"] == "content_block_start")["content_block"]
    assert (block["type"], block["name"]) == ("tool_use", "StructuredOutput")
    delta = next(event for event in structured if event["type"] == "content_block_delta")["delta"]
    assert json.loads(delta["partial_json"]) == {"a": 1}


def test_another_model_can_claim_the_answer() -> None:
    with ScriptedService(Claiming("m-2", Say("hi"))) as service:
        assert json.loads(post(service, MESSAGES)[1])["model"] == "m-2"


def test_failures_of_every_kind() -> None:
    answers = (
        fail(429, {"error": {}}, {"retry-after": "7"}),
        Raw("<p>", "text/html"),
        Unfinished("ha"),
        Drop(),
    )
    with ScriptedService(*answers) as service:
        status, _, headers = post(service, CHAT)
        assert (status, headers["retry-after"]) == (429, "7")
        assert post(service, CHAT)[:2] == (200, "<p>")
        unfinished = events(post(service, CHAT, stream=True)[1])
        assert [one["choices"][0]["finish_reason"] for one in unfinished] == [None]
        with pytest.raises(ConnectionResetError):
            post(service, CHAT, stream=True)


def test_what_is_no_question_is_not_counted() -> None:
    with ScriptedService(Say("hi")) as service:
        assert post(service, "/v1/elsewhere")[0] == 404
        assert service.asked == ()


def test_a_service_without_answers_cannot_be_made() -> None:
    with pytest.raises(ValueError):
        ScriptedService()
