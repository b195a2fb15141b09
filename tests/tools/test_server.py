"""The full server's answers: complete structures, one line of text, and calls that leave each other alone."""

from __future__ import annotations

import pytest

from baton.tools.catalogue import tool_specs
from tools.client import Message, call, request
from tools.conftest import StartClient


def _failed(result: Message, code: str) -> str:
    """The line of an error, which is the same in both parts of the answer."""
    line = result["content"][0]["text"]
    assert result["isError"] is True
    assert result["structuredContent"] == {"error": code, "message": line}
    assert "\n" not in line and len(result["content"]) == 1
    return str(line)


def test_structure_alone_is_sufficient_and_the_text_is_one_line(start_server: StartClient) -> None:
    with start_server() as client:
        client.greet()
        client.send(call(1, "control_run", {"runId": "r7", "action": "keep"}))
        result = client.call(2, "wait_run", {"runId": "r7"})
        assert result["structuredContent"] == {"runId": "r7", "state": "done", "next": "inspect\nit"}
        assert [part["text"] for part in result["content"]] == ["r7 done; next: inspect it"]
        assert not result.get("isError")


def test_a_fault_of_the_caller_is_one_line_with_its_code(start_server: StartClient) -> None:
    with start_server() as client:
        client.greet()
        assert _failed(client.call(1, "inspect_run", {"runId": "unknown"}), "not_found") == (
            "no run unknown: list them"
        )
        misspelt = _failed(
            client.call(2, "delegate_task", {"objective": "x", "allowed_files": []}), "invalid_input"
        )
        assert "delegate_task.allowed_files" in misspelt and "allowedFiles" in misspelt


def test_an_internal_fault_is_one_line_and_the_session_goes_on(start_server: StartClient) -> None:
    with start_server() as client:
        client.greet()
        line = _failed(client.call(1, "inspect_run", {"runId": "broken"}), "internal")
        assert line == "internal error in inspect_run: RuntimeError: a fault in the engine"
        assert client.call(2, "inspect_run", {"runId": "r1"})["structuredContent"]["runId"] == "r1"


def test_an_unknown_tool_is_an_error_of_the_protocol(start_server: StartClient) -> None:
    with start_server() as client:
        client.greet()
        assert "shell" in client.ask(1, "tools/call", {"name": "shell", "arguments": {}})["error"]["message"]


def test_a_waiting_call_does_not_hold_up_another(start_server: StartClient) -> None:
    with start_server() as client:
        client.greet()
        client.send(*(call(number, "wait_run", {"runId": f"r{number}"}) for number in range(1, 9)))
        # The waiting ones end only when this later call has been served.
        client.call(20, "control_run", {"runId": "r", "action": "keep"})
        for number in range(1, 9):
            assert client.result(number)["structuredContent"]["runId"] == f"r{number}"


def test_cancelling_ends_the_waiting_without_an_answer(start_server: StartClient) -> None:
    with start_server() as client:
        client.greet()
        client.send(call(1, "wait_run", {"runId": "r1"}))
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        client.call(2, "control_run", {"runId": "r1", "action": "keep"})
        seen = client.call(3, "inspect_run", {"runId": "r1"})["structuredContent"]
        assert seen["cancelled"] == ["r1"]
        client.close_input()
        with pytest.raises(EOFError):
            client.answer(1)


def test_progress_rises_while_a_call_waits(start_server: StartClient) -> None:
    with start_server() as client:
        client.greet()
        client.send(call(1, "wait_run", {"runId": "r1"}, {"progressToken": "p"}))
        number = 100
        while len(client.notes) < 3:
            client.ask(number, "ping")
            number += 1
        client.call(2, "control_run", {"runId": "r1", "action": "keep"})
        client.result(1)
    values = [
        note["params"]["progress"] for note in client.notes if note["method"] == "notifications/progress"
    ]
    assert len(values) >= 3 and values == sorted(values)
    assert {note["params"]["progressToken"] for note in client.notes} == {"p"}


def test_stray_output_stays_out_of_the_answers(start_server: StartClient) -> None:
    with start_server() as client:
        client.greet()
        client.call(1, "inspect_run", {"runId": "noisy"})
        assert not any(b"stray" in line for line in client.raw)


def test_listing_does_not_touch_the_engine(start_server: StartClient) -> None:
    with start_server() as client:
        client.greet()
        tools = client.ask(1, "tools/list")["result"]["tools"]
        assert [tool["name"] for tool in tools] == [spec.name for spec in tool_specs()]


def test_end_of_input_ends_the_server_with_calls_still_waiting(start_server: StartClient) -> None:
    with start_server() as client:
        client.greet()
        client.send(call(1, "wait_run", {"runId": "r1"}), request(2, "ping"))
        client.answer(2)
        client.close_input()
        assert client.process.wait(60) == 0
