"""What the front says is what the full server says, and it is small."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from baton.contract.base import Wire, parse
from baton.tools.catalogue import ToolSpec, tool_specs
from baton.tools.consult_catalogue import consult_specs
from baton.tools.surface import check_surface, surface_path
from tiers import sampled
from tools.client import Message, hello, request
from tools.conftest import StartClient

VERSIONS = ["2025-06-18", "1999-01-01", "2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"]

QUESTIONS: list[Message] = [
    request(1, "tools/list", {}),
    request("two", "tools/list"),
    request(3, "tools/list", {"cursor": "x"}),
    request(4, "ping"),
    request(5, "resources/list", {}),
    request(6, "resources/templates/list"),
    request(7, "prompts/list"),
]

SWITCHED_ON = ["[consult]\nenabled = true\n", "consult.enabled = true", "consult = { enabled = true }\n"]
NOT_SWITCHED_ON = ["", "[consult]\nenabled = false\n", "# consult\n", "[consult\nenabled = true\n"]


def test_tracked_surface_is_what_the_server_answers() -> None:
    assert check_surface() is None


@pytest.mark.parametrize("version", sampled(VERSIONS, 2))
def test_front_and_full_server_answer_alike(
    version: str, start_front: StartClient, start_server: StartClient
) -> None:
    said = []
    for start in (start_front, start_server):
        with start() as client:
            told = [client.greet(version)]
            told += [
                client.ask(question["id"], question["method"], question.get("params"))
                for question in QUESTIONS
            ]
            said.append(told)
    assert said[0] == said[1]


@pytest.mark.parametrize("policy", sampled(SWITCHED_ON, 1) + sampled(NOT_SWITCHED_ON, 1))
def test_front_and_full_server_agree_on_whether_other_agents_can_be_asked(
    policy: str, own_home: Path, start_front: StartClient, start_server: StartClient
) -> None:
    file = own_home / ".codex" / "baton" / "policy.toml"
    file.parent.mkdir()
    file.write_text(policy)
    said = []
    for start in (start_front, start_server):
        with start() as client:
            told = [client.greet()]
            told += [
                client.ask(question["id"], question["method"], question.get("params"))
                for question in QUESTIONS
            ]
            said.append(told)
    assert said[0] == said[1]
    tools = {tool["name"] for tool in said[0][1]["result"]["tools"]}
    assert ({"consult", "records"} <= tools) is (policy in SWITCHED_ON)
    assert ("prompts" in said[0][0]["capabilities"]) is (policy in SWITCHED_ON)


def test_switching_consultation_on_lists_nothing_inside_a_worker(
    own_home: Path, start_front: StartClient
) -> None:
    file = own_home / ".codex" / "baton" / "policy.toml"
    file.parent.mkdir()
    file.write_text(SWITCHED_ON[0])
    with start_front(BATON_WORKER="1") as client:
        client.greet()
        assert client.ask(1, "tools/list")["result"] == {"tools": []}


@pytest.mark.parametrize(
    "params",
    sampled(
        [{}, {"protocolVersion": 3}, {"protocolVersion": "2025-06-18"}, {**hello(), "clientInfo": {}}], 1
    ),
)
def test_front_and_full_server_refuse_an_incomplete_hello_alike(
    params: Message, start_front: StartClient, start_server: StartClient
) -> None:
    said = []
    for start in (start_front, start_server):
        with start() as client:
            said.append([client.ask(9, "initialize", params), client.greet()])
    assert said[0] == said[1]


MISSHAPEN: list[tuple[str, object, int | None]] = [
    # The front answers these itself.
    ("tools/list", [1], None),
    ("ping", [1], None),
    ("ping", "x", None),
    ("resources/list", [1], -32601),
    ("tools/call", [], -32602),
    ("tools/call", [1], -32602),
    ("tools/call", "x", -32602),
    ("tools/call", {"name": "inspect_run", "arguments": []}, -32602),
    ("tools/call", {"name": "inspect_run", "_meta": 3}, -32602),
]
"""Requests whose parameters are of the wrong kind, and the code of the error that is due."""


@pytest.mark.parametrize("handed_over", [False, True])
def test_a_misshapen_request_is_answered_and_the_next_one_too(
    handed_over: bool, start_front: StartClient, start_server: StartClient
) -> None:
    with (start_front if handed_over else start_server)() as client:
        client.greet()
        client.send(request("meta", "ping", {"_meta": 3}))
        assert client.answer("meta")["jsonrpc"] == "2.0"
        for number, (method, params, code) in enumerate(MISSHAPEN, 1):
            client.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            assert client.answer(number).get("error", {}).get("code") == code, (method, params)
        client.send({"jsonrpc": "2.0", "id": "odd", "method": {}}, {"id": "none", "method": "ping"})
        assert client.answer("odd")["error"]["code"] == -32601
        assert client.answer("none")["result"] == {}
        for name, text in (("half", r'"\ud800"'), ("deep", '{"a":' * 300 + "1" + "}" * 300)):
            called = f'{{"name": "inspect_run", "arguments": {{"runId": {text}}}}}'
            line = f'{{"jsonrpc": "2.0", "id": "{name}", "method": "tools/call", "params": {called}}}\n'
            client.write(line.encode())
            assert client.answer(name)["error"]["code"] == -32602


def test_lines_that_are_no_messages_are_passed_over(start_front: StartClient) -> None:
    opening = json.dumps(request(0, "initialize", hello())).encode()
    with start_front() as client:
        client.write(b"\n".join([b"\xff\xfe{]", b"", b"[]", b"3", b"[" * 100_000, opening, b""]))
        assert client.answer(0)["result"]["serverInfo"]["name"] == "baton"


def test_server_inside_a_worker_lists_no_tools(start_front: StartClient, start_server: StartClient) -> None:
    said = []
    for start in (start_front, start_server):
        with start(BATON_WORKER="1") as client:
            said.append([client.greet(), client.ask(1, "tools/list")])
    assert said[0] == said[1]
    assert said[0][1]["result"] == {"tools": []}
    assert "instructions" not in said[0][0]


def test_calls_from_inside_a_worker_are_refused_without_a_server(start_front: StartClient) -> None:
    with start_front(BATON_WORKER="1", BATON_RUNTIME="/nowhere") as client:
        client.greet()
        answer = client.ask(1, "tools/call", {"name": "delegate_task", "arguments": {}})
        assert answer["error"]["code"] == -32601


def test_surface_is_small_and_asks_for_the_session() -> None:
    surface = json.loads(surface_path().read_text())
    assert len(surface["initialize"]["instructions"]) <= 600
    assert len(json.dumps(surface["tools"], separators=(",", ":"))) <= 20_000
    assert "codex/sandbox-state-meta" in surface["initialize"]["capabilities"]["experimental"]
    assert "yield_time_ms" in surface["initialize"]["instructions"]


def test_tools_for_other_agents_are_small() -> None:
    surface = json.loads(surface_path().read_text())
    told = surface["consult"]["initialize"]["instructions"]
    assert len(told) <= 600 and "yield_time_ms" in told and "consult" in told
    assert list(surface["instructions"]) == [
        "consult",
        "consult review",
        "consult workflow",
        "consult review workflow",
    ]
    for groups, told in surface["instructions"].items():
        assert len(told) <= 600 and told.endswith("paid request.")
        for group in ("review", "workflow"):
            assert (f": {group}." in told) is (group in groups.split())
    added = [tool for tool in surface["consult"]["tools"]["tools"] if tool not in surface["tools"]["tools"]]
    assert [tool["name"] for tool in added] == ["consult", "records"]
    assert len(json.dumps(added, separators=(",", ":"))) <= 8_000


def test_when_to_delegate_is_said_before_codex_cuts_the_instructions() -> None:
    opening = json.loads(surface_path().read_text())["initialize"]["instructions"][:240]
    for word in ("Delegate", "orchestrate", "workers", "scope", "verified", "yourself"):
        assert word in opening


def test_annotations_say_what_a_tool_may_do() -> None:
    hints = {
        tool["name"]: tool["annotations"] for tool in json.loads(surface_path().read_text())["tools"]["tools"]
    }
    changing = {"delegate_task", "delegate_tasks", "control_run", "continue_task"}
    assert changing - {"continue_task"} <= hints.keys()
    for name, hint in hints.items():
        reads = name not in changing
        assert hint["readOnlyHint"] is reads
        assert hint["destructiveHint"] is not reads


@pytest.mark.parametrize("spec", tool_specs() + consult_specs(), ids=lambda spec: spec.name)
def test_schema_names_exactly_the_arguments_that_the_contract_takes(spec: ToolSpec) -> None:
    schema = spec.declaration().input_schema
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator.check_schema(spec.output)
    model: type[Wire] = spec.arguments
    assert set(schema["properties"]) == {field.alias for field in model.model_fields.values()}
    assert "$ref" not in json.dumps(schema) and "title" not in json.dumps(schema)


def test_arguments_that_fit_the_schema_fit_the_contract() -> None:
    examples: dict[str, Message] = {
        "delegate_task": {
            "objective": "x",
            "allowedFiles": ["src"],
            "verificationCommands": ["make test", ["make", "test"]],
            "contextCapsule": {"interfaces": ["f()"]},
            "taskCategory": "bugfix",
            "integrate": "hold",
            "facts": {
                "seams": "clear",
                "sizeLines": 80,
                "sharedState": False,
                "integration": "easy",
                "verification": "command",
            },
        },
        "delegate_tasks": {
            "tasks": [{"objective": "x", "allowedFiles": ["a/"], "id": "a", "dependsOn": ["b"]}],
            "mode": "sequential",
            "maxParallel": 3,
            "allowOverlap": True,
        },
        "explore": {"question": "why", "files": ["src"], "context": ["seen"], "effort": "low"},
        "continue_task": {
            "runId": "r1",
            "taskId": "a",
            "message": "more",
            "verificationCommands": ["make", ["make", "x"]],
        },
        "wait_run": {"runId": "r1", "waitSeconds": 0},
        "inspect_run": {"runId": "r1", "what": "diff", "taskId": "a", "attempt": 1},
        "control_run": {"runId": "r1", "action": "integrate", "tasks": ["a"]},
        "consult": {
            "question": "why",
            "targets": ["claude"],
            "bothSides": False,
            "sourceMode": "document",
            "contextPaths": ["a.py"],
            "answerSchema": {"type": "object"},
        },
        "records": {"action": "read", "id": "c1", "what": "raw", "turn": 1, "offset": 5},
    }
    for spec in tool_specs() + consult_specs():
        jsonschema.validate(examples[spec.name], spec.declaration().input_schema)
        parse(spec.arguments, examples[spec.name], spec.name)
