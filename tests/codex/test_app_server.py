"""The conversation with the app-server holds, whatever the other side does."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import psutil
import pytest

from baton.codex.appserver import AppServer
from baton.codex.events import Notification, ThreadEvents
from baton.codex.faults import NoAnswer, RequestRefused, ServerDied
from baton.contract.errors import CodexFailure
from baton.engine.servers import Servers
from baton.simulate.model_server import ScriptedModel
from codex.workers_bench import Bench

pytestmark = pytest.mark.anyio

STAND_IN = '''#!{python}
"""Answers like an app-server: each method does what its name says."""
import json, os, sys, time
def put(value): sys.stdout.write(json.dumps(value) + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method is None: put({{"method": "heard", "params": {{"threadId": "t", "answer": message}}}})
    elif method == "initialize": put({{"id": number, "result": {{"userAgent": "stand-in"}}}})
    elif method == "silent": pass
    elif method == "refuse": put({{"id": number, "error": {{"code": -32600, "message": "no\\nway"}}}})
    elif method == "huge":
        put({{"method": "item/completed", "params": {{"threadId": "t", "text": "x" * 6_000_000}}}})
        put({{"id": number, "result": {{}}}})
    elif method == "garbage":
        sys.stdout.write("garbage\\n\\n[1]\\n{{broken\\n" + "[" * 100000 + "\\n"); sys.stdout.flush()
        sys.stdout.buffer.write(b"\\xff\\xfe\\n")
        for odd in (99999, "odd", number): put({{"id": odd, "result": {{}}}})
    elif method == "ask":
        for asked in message["params"]["methods"]:
            put({{"id": asked, "method": asked, "params": {{"threadId": "t"}}}})
        put({{"id": number, "result": {{}}}})
    elif method == "deltas":
        for _ in range(1000): put({{"method": "item/agentMessage/delta", "params": {{"threadId": "t"}}}})
        put({{"id": number, "result": {{}}}})
    elif method == "die": sys.stderr.write("\\x1b[31mlast words\\x1b[0m\\n"); sys.stderr.flush(); os._exit(7)
    elif method == "stay": put({{"id": number, "result": {{}}}}); time.sleep(604)
    elif number is not None: put({{"id": number, "result": message.get("params")}})
'''


@pytest.fixture
async def server(test_root: Path) -> AppServer:
    program = test_root / "stand-in"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    return await AppServer.start(
        program, test_root, {"PATH": "/usr/bin:/bin"}, stderr=test_root / "err", cwd=test_root
    )


async def test_requests_in_flight_get_their_own_answers(server: AppServer) -> None:
    async with server:
        answers = await asyncio.gather(*(server.request("echo", {"n": n}) for n in range(50)))
    assert [answer["n"] for answer in answers] == list(range(50))


async def test_a_request_without_an_answer_ends_at_its_deadline(server: AppServer) -> None:
    async with server:
        with pytest.raises(NoAnswer, match=r"silent within 0\.2 s"):
            await server.request("silent", timeout=0.2)
        assert await server.request("echo", {"still": "there"}) == {"still": "there"}


async def test_work_goes_to_a_fresh_server_once_one_does_not_answer(test_root: Path) -> None:
    program = test_root / "stand-in"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)

    async def start() -> AppServer:
        return await AppServer.start(
            program, test_root, {"PATH": "/usr/bin:/bin"}, stderr=test_root / "err", cwd=test_root
        )

    servers = Servers(start, 8)
    async with servers.one() as at_work, servers.one() as same:
        assert same is at_work
        with pytest.raises(NoAnswer):
            await at_work.request("silent", timeout=0.2)
        assert at_work.alive and not at_work.answers
        async with servers.one() as fresh:
            assert fresh is not at_work
        # Who is at work on it goes on, and its answer shows that it is well.
        await at_work.request("echo")
        async with servers.one() as again:
            assert again is at_work
        with pytest.raises(NoAnswer):
            await at_work.request("silent", timeout=0.2)
    async with servers.one() as after:
        assert after is fresh and not at_work.alive
    await servers.close()


async def test_an_error_answer_is_one_line(server: AppServer) -> None:
    async with server:
        with pytest.raises(RequestRefused, match="Codex refused refuse: no way") as refused:
            await server.request("refuse")
    assert refused.value.rpc_code == -32600


async def test_events_of_megabytes_and_garbage_do_no_harm(server: AppServer) -> None:
    async with server:
        await server.request("huge")
        await server.request("garbage")
        event = await server.events("t").next(asyncio.get_running_loop().time() + 5)
        assert event is not None and len(event.params["text"]) == 6_000_000
        assert server.garbage == 5


async def test_whatever_the_server_asks_is_declined(server: AppServer) -> None:
    methods = [
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/permissions/requestApproval",
        "execCommandApproval",
        "applyPatchApproval",
        "mcpServer/elicitation/request",
        "item/tool/requestUserInput",
        "something/new",
    ]
    answers = {}
    async with server:
        await server.request("ask", {"methods": methods})
        events = server.events("t")
        while len(answers) < len(methods):
            event = await events.next(asyncio.get_running_loop().time() + 10)
            assert event is not None
            if event.method == "heard":
                answer = event.params["answer"]
                answers[answer["id"]] = answer.get("result", answer.get("error"))
            else:
                assert event.method.startswith("declined/")
    assert answers["item/commandExecution/requestApproval"] == {"decision": "decline"}
    assert answers["execCommandApproval"] == {"decision": "denied"}
    assert answers["item/permissions/requestApproval"] == {"permissions": {}}
    assert answers["mcpServer/elicitation/request"] == {"action": "decline"}
    assert answers["something/new"]["code"] == -32601
    assert "accept" not in json.dumps(answers) and "approved" not in json.dumps(answers)


async def test_fragments_count_as_activity_and_take_no_memory(server: AppServer) -> None:
    async with server:
        events = server.events("t")
        await server.request("deltas")
        assert events.last_activity is not None
        assert await events.next(0) is None


async def test_death_wakes_everyone_and_says_the_last_words(server: AppServer) -> None:
    async with server:
        waiting = [asyncio.create_task(server.request("silent")) for _ in range(3)]
        listening = asyncio.create_task(server.events("t").next(asyncio.get_running_loop().time() + 60))
        await asyncio.sleep(0)
        with pytest.raises(ServerDied, match="Codex ended with status 7: last words"):
            await server.request("die")
        results = await asyncio.gather(*waiting, listening, return_exceptions=True)
        assert [type(result) for result in results] == [ServerDied] * 4
        with pytest.raises(ServerDied):
            await server.request("echo")
        with pytest.raises(ServerDied):
            await server.events("new").next(0)


async def test_closing_ends_a_server_that_does_not_listen_and_may_be_repeated(server: AppServer) -> None:
    await server.request("stay")
    program = psutil.Process(server.program_pid)
    waiting = asyncio.create_task(server.request("silent"))
    await asyncio.sleep(0)
    await server.close()
    await server.close()
    assert not program.is_running() and not server.alive
    with pytest.raises(ServerDied, match="closed"):
        await waiting


async def test_a_program_that_is_missing_or_no_app_server_is_one_line(test_root: Path) -> None:
    for program, said in (
        (test_root / "none", "could not be started"),
        (Path("/bin/false"), "ended with status 1"),
    ):
        with pytest.raises(CodexFailure, match=said):
            await AppServer.start(program, test_root, {}, stderr=test_root / "err", cwd=test_root)


async def test_what_is_queued_is_heard_before_the_failure() -> None:
    events = ThreadEvents()
    events.put(Notification("turn/completed"))
    events.fail(ServerDied("gone"))
    assert await events.next(0) == Notification("turn/completed")
    with pytest.raises(ServerDied):
        await events.next(0)


@pytest.mark.codex
async def test_the_real_server_refuses_unknown_settings_and_says_which(
    test_root: Path, codex_binary: Path, model: ScriptedModel
) -> None:
    bench = Bench(test_root, codex_binary, model.port)
    with pytest.raises(CodexFailure, match="no_such_key"):
        await bench.server(extra={"no_such_key": True})


@pytest.mark.codex
async def test_a_garbled_line_does_not_end_the_real_server(
    test_root: Path, codex_binary: Path, model: ScriptedModel
) -> None:
    bench = Bench(test_root, codex_binary, model.port)
    async with await bench.server() as server:
        await server._child.stdin.send(b"no json\n")
        with pytest.raises(RequestRefused, match="unknown variant"):
            await server.request("no/such/method")
        assert (await server.request("model/list", {}))["data"]
