"""The front becomes the full server in mid-conversation, and nothing of it is lost or said twice."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tiers import sampled
from tools.client import call, hello, request
from tools.conftest import StartClient

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def test_first_call_is_answered_by_the_same_process(start_front: StartClient) -> None:
    with start_front() as client:
        client.greet()
        client.ask(1, "tools/list")
        seen = client.call(2, "inspect_run", {"runId": "r1"}, {"threadId": "t9"})["structuredContent"]
        assert seen["pid"] == client.process.pid
        assert seen["session"]["threadId"] == "t9"
        assert client.ask(3, "ping")["result"] == {}
        client.ask(4, "tools/list")
    answered = [json.loads(line)["id"] for line in client.raw]
    assert sorted(answered) == [0, 1, 2, 3, 4]


def test_everything_said_in_one_breath_is_answered_once(start_front: StartClient) -> None:
    """`initialize`, calls and half a line in one write; the other half after the hand-over."""
    late = json.dumps(call(6, "inspect_run", {"runId": "late"})).encode() + b"\n"
    messages = [
        request(0, "initialize", hello()),
        INITIALIZED,
        request(1, "tools/list"),
        call(2, "inspect_run", {"runId": "r2"}),
        request(3, "ping"),
        call(4, "control_run", {"runId": "r4", "action": "keep"}),
        call(5, "wait_run", {"runId": "r5"}),
    ]
    with start_front() as client:
        client.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages) + late[:30])
        for number in range(6):
            assert "result" in client.answer(number)
        client.write(late[30:])
        assert client.result(6)["structuredContent"]["runId"] == "late"
    assert len(client.raw) == 7


def test_a_call_larger_than_any_pipe_arrives_whole(start_front: StartClient) -> None:
    with start_front() as client:
        client.greet()
        text = "ä€𝄞\u2028" * 40_000
        result = client.call(1, "delegate_task", {"objective": text, "changeIntent": "forbidden"})
        assert result["structuredContent"]["length"] == len(text)
        again = client.call(2, "delegate_task", {"objective": text, "changeIntent": "forbidden"})
        assert again["structuredContent"]["length"] == len(text)


def test_a_client_that_never_says_initialized_is_served(start_front: StartClient) -> None:
    with start_front() as client:
        client.ask(0, "initialize", hello())
        assert client.call(1, "inspect_run", {"runId": "r1"})["structuredContent"]["runId"] == "r1"


def test_a_conversation_that_does_not_open_with_initialize_is_left_to_the_full_server(
    start_front: StartClient,
) -> None:
    with start_front() as client:
        assert client.ask(1, "tools/list", {})["error"]["code"] == -32602
        client.greet()
        assert client.ask(2, "tools/list", {})["result"]["tools"]


def test_unknown_methods_are_answered_by_the_full_server(start_front: StartClient) -> None:
    with start_front() as client:
        client.greet()
        assert client.ask("x", "made/up")["error"]["code"] == -32601


@pytest.mark.parametrize("number", sampled([signal.SIGTERM, signal.SIGKILL, signal.SIGHUP], 1))
@pytest.mark.parametrize("handed_over", [False, True])
def test_a_signal_ends_it_before_and_after_the_hand_over(
    number: signal.Signals, handed_over: bool, start_front: StartClient
) -> None:
    with start_front() as client:
        client.greet()
        if handed_over:
            client.call(1, "inspect_run", {"runId": "r1"})
        client.process.send_signal(number)
        assert client.process.wait(60) == -number


@pytest.mark.parametrize("handed_over", [False, True])
def test_end_of_input_ends_it_in_peace(handed_over: bool, start_front: StartClient) -> None:
    with start_front() as client:
        client.greet()
        if handed_over:
            client.call(1, "inspect_run", {"runId": "r1"})
        client.close_input()
        assert client.process.wait(60) == 0


def test_nothing_is_written_into_the_plugin(start_front: StartClient, plugin: Path) -> None:
    before = sorted(plugin.rglob("*"))
    with start_front() as client:
        client.greet()
        client.call(1, "inspect_run", {"runId": "r1"})
    assert sorted(plugin.rglob("*")) == before


def test_a_named_runtime_that_cannot_be_started_is_one_line_and_the_next_call_tries_again(
    start_front: StartClient, test_root: Path, fake_runtime: Path
) -> None:
    missing = test_root / "later"
    with start_front(BATON_RUNTIME=str(missing)) as client:
        client.greet()
        result = client.call(1, "inspect_run", {"runId": "r1"})
        assert result["isError"] and result["structuredContent"]["error"] == "runtime_unavailable"
        assert str(missing) in result["content"][0]["text"]
        missing.symlink_to(fake_runtime)
        assert client.call(2, "inspect_run", {"runId": "r2"})["structuredContent"]["runId"] == "r2"
