"""One question under the guard: deadlines, limits, what a program sees, and that nothing of it is left.

The programs here are fakes, for what the real ones cannot be made to do at will.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from baton.consult import run
from baton.consult.adapters.program import environment, find_program
from baton.consult.adapters.protocol import (
    Agent,
    CannotAsk,
    Exit,
    Invocation,
    Kill,
    Places,
    Progress,
    Question,
    Reply,
    Runtime,
    Sees,
    Watcher,
)
from baton.contract.errors import StateUnavailable
from baton.contract.reply import ReplyFailure
from consult.adapters.conftest import Desk, question

AGENT = Agent("fake", Runtime.ANTIGRAVITY)

Script = Callable[[str, str], str]


class Fake:
    """An adapter of a program that prints its answer."""

    runtime = Runtime.ANTIGRAVITY
    sees = Sees.GIVEN
    web = False

    def __init__(self, program: str, *, kill_at: bytes | None = None, fault: Exception | None = None) -> None:
        self.program = program
        self.kill_at = kill_at
        self.fault = fault
        self.ended: Exit | None = None

    def prepare(self, agent: Agent, asked: Question, places: Places) -> Invocation:
        if self.fault is not None:
            raise self.fault
        env = environment(places.house, AGENT_MARK="mine")
        return Invocation((self.program,), env, places.scratch, asked.prompt.encode())

    def watcher(self) -> Watcher:
        def look(line: bytes) -> Kill | None:
            loops = self.kill_at is not None and self.kill_at in line
            return Kill(ReplyFailure.LOOP, "it loops") if loops else None

        return look

    def read(self, agent: Agent, asked: Question, places: Places, ended: Exit) -> Reply:
        self.ended = ended
        text = places.stdout.read_text().strip()
        structured = json.loads(text) if asked.answer_schema is not None and text[:1] == "{" else None
        return Reply(text=text or None, structured=structured, session_id="s")


def test_an_answer_comes_with_the_question_given_on_standard_input(desk: Desk, script: Script) -> None:
    body = "import sys\ntext = sys.stdin.read()\nprint(len(text), text[-3:])"
    reply = desk.ask(AGENT, question("a" * 300_000 + "end"), adapter=Fake(script("f", body)))
    assert (reply.text, reply.failure) == ("300003 end", None)
    assert [told.event for told in desk.told] == ["started", "line"]
    assert desk.told[0].pid


def test_a_program_that_reads_nothing_of_a_long_question_is_no_fault(desk: Desk, script: Script) -> None:
    reply = desk.ask(AGENT, question("a" * 3_000_000), adapter=Fake(script("f", "print('done')")))
    assert reply.text == "done"


def test_silence_ends_the_program_with_all_that_it_started(desk: Desk, script: Script) -> None:
    body = """import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
print(os.getpid(), flush=True)
time.sleep(600)"""
    fake, places = Fake(script("f", body)), desk.places()
    reply = desk.ask(AGENT, question(idle_seconds=1.0), places, fake)
    assert reply.failure is ReplyFailure.IDLE_TIMEOUT
    assert "no output for 1 s" in reply.detail
    pids = [int(word) for word in places.stdout.read_text().split()]
    assert len(pids) == 2
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


def test_a_program_that_never_stops_talking_ends_at_its_time(desk: Desk, script: Script) -> None:
    body = "import time\nwhile True: print('x', flush=True); time.sleep(0.05)"
    reply = desk.ask(AGENT, question(timeout_seconds=1.5, idle_seconds=60.0), adapter=Fake(script("f", body)))
    assert reply.failure is ReplyFailure.TURN_TIMEOUT
    assert reply.session_id == "s"  # what it told is kept


def test_what_the_watcher_sees_ends_the_program(desk: Desk, script: Script) -> None:
    body = "import time\nprint('loop', flush=True)\ntime.sleep(600)"
    reply = desk.ask(AGENT, question(), adapter=Fake(script("f", body), kill_at=b"loop"))
    assert (reply.failure, reply.detail) == (ReplyFailure.LOOP, "it loops")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_is_ended_and_its_beginning_kept(
    desk: Desk, script: Script, monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    monkeypatch.setattr(run, "MAX_OUTPUT", 100_000)
    body = f"import sys\nwhile True: sys.{stream}.write('x' * 1000 + '\\n')"
    places = desk.places()
    reply = desk.ask(AGENT, question(), places, Fake(script("f", body)))
    assert reply.failure is ReplyFailure.TOO_MUCH
    assert (places.stdout if stream == "stdout" else places.stderr).stat().st_size >= 100_000
    assert places.stdout.stat().st_size <= 100_000


def test_a_long_answer_is_cut_and_says_where_the_whole_is(
    desk: Desk, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MAX_TEXT", 1000)
    reply = desk.ask(AGENT, question(), adapter=Fake(script("f", "print('y' * 5000)")))
    assert reply.text == "y" * 1000
    assert reply.failure is None
    assert "stdout" in reply.detail


def test_cancelling_ends_the_program_and_keeps_what_it_said(desk: Desk, script: Script) -> None:
    body = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    places = desk.places()

    async def cancelled() -> None:
        async with anyio.create_task_group() as tasks:

            def tell(progress: Progress) -> None:
                if progress.event == "line":
                    tasks.cancel_scope.cancel()

            tasks.start_soon(run.ask, Fake(script("f", body)), AGENT, question(), places, tell)

    anyio.run(cancelled)
    assert not psutil.pid_exists(int(places.stdout.read_text()))


def test_a_program_that_is_killed_from_outside_is_told_so(desk: Desk, script: Script) -> None:
    fake = Fake(script("f", "import os\nprint('a', flush=True)\nos.kill(os.getpid(), 9)"))
    desk.ask(AGENT, question(), adapter=fake)
    assert fake.ended == Exit(None, 9)


def test_a_program_that_is_not_there_is_told_so(desk: Desk) -> None:
    reply = desk.ask(AGENT, question(), adapter=Fake("/nowhere/at/all"))
    assert reply.failure is ReplyFailure.NOT_INSTALLED
    assert "/nowhere/at/all" in reply.detail


def test_a_refusal_to_ask_is_a_reply_with_what_to_do(desk: Desk) -> None:
    fault = CannotAsk(ReplyFailure.AUTH, "log in", "program login")
    reply = desk.ask(AGENT, question(), adapter=Fake("f", fault=fault))
    assert (reply.failure, reply.detail, reply.required_action) == (
        ReplyFailure.AUTH,
        "log in",
        "program login",
    )


def test_output_that_cannot_be_written_stops_before_anything_is_asked(desk: Desk, script: Script) -> None:
    places = desk.places()
    places.stdout.mkdir()
    with pytest.raises(StateUnavailable):
        desk.ask(AGENT, question(), places, Fake(script("f", "print('x')")))
    assert desk.told == []


SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("said", "failure", "detail"),
    [
        ('{"n": 4}', None, ""),
        ('{"n": "4"}', ReplyFailure.BAD_ANSWER, "at n: '4' is not of type 'integer'"),
        ("{}", ReplyFailure.BAD_ANSWER, "at its top: 'n' is a required property"),
        ("four", ReplyFailure.BAD_ANSWER, "no JSON"),
    ],
)
def test_an_answer_is_held_against_its_schema_by_us(
    desk: Desk, script: Script, said: str, failure: ReplyFailure | None, detail: str
) -> None:
    fake = Fake(script("f", f"print({said!r})"))
    reply = desk.ask(AGENT, question(answer_schema=SCHEMA), adapter=fake)
    assert reply.failure == failure
    assert detail in reply.detail
    assert reply.text == said  # paid for, so kept


@pytest.mark.parametrize("schema", [{"type": "objekt"}, {"$ref": "#/gone"}, {"$ref": "file:///dev/null"}])
def test_a_schema_that_is_none_is_refused_before_anything_is_asked(
    desk: Desk, script: Script, schema: dict[str, Any]
) -> None:
    asked = question(answer_schema=schema)
    reply = desk.ask(AGENT, asked, adapter=Fake(script("f", "print('x')")))
    assert reply.failure is ReplyFailure.BAD_REQUEST
    assert "schema" in reply.detail
    assert desk.told == []


def test_the_program_sees_proxies_and_authorities_and_no_key_of_others(desk: Desk, script: Script) -> None:
    body = "import json, os\nprint(json.dumps(dict(os.environ)))"
    given = {
        "HTTPS_PROXY": "http://proxy:1",
        "no_proxy": "localhost",
        "NODE_EXTRA_CA_CERTS": "/ca.pem",
        "SSL_CERT_FILE": "/ca.pem",
        "DATABASE_URL": "postgres://secret",
        "OPENAI_API_KEY": "sk-secret",
        "GIT_DIR": "/elsewhere",
        "CLAUDECODE": "1",
    }
    reply = desk.with_env(**given).ask(AGENT, question(), adapter=Fake(script("f", body)))
    seen = json.loads(reply.text or "")
    passed = ("HTTPS_PROXY", "no_proxy", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")
    assert {name: seen.get(name) for name in passed} == {name: given[name] for name in passed}
    assert not set(seen) & {"DATABASE_URL", "OPENAI_API_KEY", "GIT_DIR", "CLAUDECODE", "CODEX_HOME"}
    assert seen["BATON_WORKER"] == "1"  # our own server inside it gives no tools
    assert seen["HOME"] == desk.house.env["HOME"]


def test_without_a_home_nothing_is_started(desk: Desk, script: Script) -> None:
    """The programs would write into that of the account instead."""
    reply = desk.without_env("HOME").ask(AGENT, question(), adapter=Fake(script("f", "print('x')")))
    assert reply.failure is not None
    assert "HOME" in reply.detail
    assert desk.told == []


def test_raw_output_is_readable_by_its_owner_alone(desk: Desk, script: Script) -> None:
    places = desk.places()
    desk.ask(AGENT, question(), places, Fake(script("f", "print('x')")))
    assert [path.stat().st_mode & 0o777 for path in (places.stdout, places.stderr)] == [0o600, 0o600]


def test_a_program_is_never_taken_from_a_relative_folder(
    desk: Desk, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(script("claude", "pass")).parent)
    with pytest.raises(CannotAsk):
        find_program("claude", {"PATH": os.pathsep.join((".", "", "/usr/nowhere"))})


def test_many_questions_at_once_are_all_answered(desk: Desk, script: Script) -> None:
    fake, replies = Fake(script("f", "import sys\nprint(sys.stdin.read())")), []

    async def one(number: int) -> None:
        replies.append(await run.ask(fake, AGENT, question(f"q{number}"), desk.places()))

    async def every() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(one, number)

    anyio.run(every)
    assert sorted(reply.text or "" for reply in replies) == sorted(f"q{n}" for n in range(20))
