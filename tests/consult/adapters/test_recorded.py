"""What the command lines print becomes the right reply: read from what the real ones printed, as recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from baton.consult.adapters import adapter_of
from baton.consult.adapters.protocol import Agent, Exit, Kill, Reply, Runtime
from baton.consult.run import checked
from baton.contract.reply import ReplyFailure
from consult.adapters.cases import CASES, SCHEMA, Case
from consult.adapters.conftest import Desk, question

RECORDED = Path(__file__).parent / "recorded"

MODELS = {"claude": "claude-sonnet-5", "opencode": "simulated/m1", "copilot": "simulated-1"}

EACH = [(runtime, case) for runtime, cases in CASES.items() for case in cases if case.recorded]


def read(desk: Desk, runtime: str, case: str, *, cut: int | None = None, **more: Any) -> Reply:
    """The reply to a recorded run; `cut` leaves only so many bytes of its output."""
    recorded = json.loads((RECORDED / f"{runtime}-{case}.json").read_text())
    lines = "".join(json.dumps(event) + "\n" for event in recorded["stdout"]).encode()
    places = desk.places()
    places.stdout.write_bytes(lines[:cut])
    places.stderr.write_text(recorded["stderr"])
    (places.scratch / "usage.json").write_text(recorded["usage"])
    adapter: Any = adapter_of(Runtime(runtime))
    agent = Agent(runtime, Runtime(runtime), model=MODELS[runtime])
    ended = more.pop("ended", Exit(recorded["status"]))
    reply: Reply = adapter.read(agent, question(**more), places, ended)
    return reply


@pytest.mark.parametrize(("runtime", "case"), EACH, ids=[f"{runtime}-{case.name}" for runtime, case in EACH])
def test_every_recorded_run_is_read_as_the_table_says(desk: Desk, runtime: str, case: Case) -> None:
    schema = SCHEMA if case.with_schema else None
    asked = question(answer_schema=schema)
    reply = checked(read(desk, runtime, case.name, answer_schema=schema), asked)
    agrees(reply, case)
    assert reply.session_id is not None


def agrees(reply: Reply, case: Case) -> None:
    """The reply is the one that the table promises."""
    assert reply.failure == case.failure, reply
    assert reply.text == case.text
    assert reply.structured == case.structured
    assert case.says in reply.detail
    assert len(reply.detail.splitlines()) <= 1
    assert (reply.usage and reply.usage.total_tokens) == case.usage or case.failure is not None
    if reply.usage is None:
        assert reply.cost is None
    for name, value in case.more.items():
        assert getattr(reply, name) == value


@pytest.mark.parametrize("runtime", CASES)
def test_output_cut_anywhere_is_a_failure_or_the_whole_answer_and_never_an_error(
    desk: Desk, runtime: str
) -> None:
    whole = read(desk, runtime, "schema", answer_schema=SCHEMA)
    size = sum(len(json.dumps(event)) + 1 for event in _events(runtime))
    for cut in range(0, size, max(1, size // 60)):
        for ended in (Exit(None, 9), Exit(1)):
            reply = read(desk, runtime, "schema", cut=cut, ended=ended, answer_schema=SCHEMA)
            assert reply.failure is not None or reply.text == whole.text


def _events(runtime: str) -> list[Any]:
    events: list[Any] = json.loads((RECORDED / f"{runtime}-schema.json").read_text())["stdout"]
    return events


@pytest.mark.parametrize("runtime", CASES)
@pytest.mark.parametrize(
    "garbage", [b"", b"\xff\xfe\x00{\n[1,2]\n", b"{" * 5000, b'{"type":"result"}\n', b"null\n3\n"]
)
def test_garbage_is_a_failure_with_one_line(desk: Desk, runtime: str, garbage: bytes) -> None:
    agent = Agent(runtime, Runtime(runtime), model=MODELS[runtime])
    for code in (0, 1):
        reply = desk.read(agent, question(), garbage, b"\x1b[31mboom\x1b[0m\n", code)
        assert reply.failure is not None
        assert reply.text is None
        assert reply.usage is None
        assert reply.detail and len(reply.detail.splitlines()) == 1


@pytest.mark.parametrize("runtime", CASES)
def test_a_program_that_we_ended_keeps_its_usage_and_gives_no_text(desk: Desk, runtime: str) -> None:
    killed = Exit(None, 15, Kill(ReplyFailure.TURN_TIMEOUT, "not done in time"))
    reply = read(desk, runtime, "schema", ended=killed)
    assert (reply.failure, reply.detail, reply.text) == (ReplyFailure.TURN_TIMEOUT, "not done in time", None)
    assert reply.usage is not None


def test_exit_status_zero_alone_is_no_success(desk: Desk) -> None:
    """Copilot ends with status 0 on SIGTERM, and OpenCode whenever a permission is refused."""
    agent = Agent("copilot", Runtime.COPILOT)
    line = b'{"type":"result","sessionId":"11111111-1111-4111-8111-111111111111","exitCode":0}\n'
    assert desk.read(agent, question(), line, b"", 0).failure is ReplyFailure.NO_ANSWER
    step = b'{"type":"step_start","sessionID":"ses_1","part":{}}\n'
    asked = b'{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls","tokens":{}}}\n'
    reply = desk.read(Agent("o", Runtime.OPENCODE, model="a/b"), question(), step + asked, b"", 0)
    assert reply.failure is ReplyFailure.NO_ANSWER
    assert "tool-calls" in reply.detail


def test_a_success_of_claude_that_is_an_error_is_a_failure(desk: Desk) -> None:
    result = {"type": "result", "subtype": "success", "is_error": True, "result": "Not logged in"}
    reply = desk.read(Agent("c", Runtime.CLAUDE), question(), json.dumps(result).encode(), b"", 1)
    assert (reply.failure, reply.text) == (ReplyFailure.AUTH, None)
    assert reply.required_action == "claude auth login"


def test_the_limit_of_a_plan_tells_when_it_ends(desk: Desk) -> None:
    lines = (
        b'{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":4102444800}}\n'
        b'{"type":"result","subtype":"success","is_error":true,"result":"You\'ve hit your 5-hour limit"}\n'
    )
    reply = desk.read(Agent("c", Runtime.CLAUDE), question(), lines, b"", 1)
    assert reply.failure is ReplyFailure.USAGE_LIMIT
    assert reply.retry_after is not None and reply.retry_after > 1e6


@pytest.mark.parametrize(
    ("subtype", "failure"),
    [
        ("error_max_turns", ReplyFailure.LOOP),
        ("error_max_budget_usd", ReplyFailure.USAGE_LIMIT),
        ("error_during_execution", ReplyFailure.OTHER),
    ],
)
def test_how_claude_gave_up_is_told(desk: Desk, subtype: str, failure: ReplyFailure) -> None:
    line = json.dumps({"type": "result", "subtype": subtype, "is_error": True, "errors": ["so it is"]})
    reply = desk.read(Agent("c", Runtime.CLAUDE), question(), line.encode(), b"", 1)
    assert (reply.failure, reply.detail) == (failure, "so it is")


@pytest.mark.parametrize(
    ("runtime", "said", "failure"),
    [
        (Runtime.CLAUDE, "No conversation found with session ID: x", ReplyFailure.SESSION_GONE),
        (Runtime.OPENCODE, "Error: Session not found", ReplyFailure.SESSION_GONE),
        (Runtime.COPILOT, "No session or task matched 'x'", ReplyFailure.SESSION_GONE),
        (Runtime.COPILOT, "Error: No authentication information found.", ReplyFailure.AUTH),
    ],
)
def test_words_on_the_error_output_are_classed(
    desk: Desk, runtime: Runtime, said: str, failure: ReplyFailure
) -> None:
    reply = desk.read(Agent("a", runtime, model="a/b"), question(), b"", said.encode(), 1)
    assert reply.failure is failure
    assert said in reply.detail


def test_the_cost_of_a_conversation_that_goes_on_is_that_of_the_question(desk: Desk) -> None:
    """The total that Claude Code tells is that of the whole conversation."""
    result = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "four",
        "usage": {"input_tokens": 5, "output_tokens": 2},
        "total_cost_usd": 0.9,
    }
    resumed = question(resume="11111111-1111-4111-8111-111111111111")
    agent = Agent("c", Runtime.CLAUDE)
    since = {**result, "model_usage_since_last_result": {"m": {"costUSD": 0.25}, "n": {"costUSD": 0.5}}}
    assert desk.read(agent, resumed, json.dumps(since).encode(), b"", 0).cost == 0.75
    assert desk.read(agent, resumed, json.dumps(result).encode(), b"", 0).cost is None
    assert desk.read(agent, question(), json.dumps(result).encode(), b"", 0).cost == 0.9
