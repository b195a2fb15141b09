"""The real Codex, asked through the app-server with a scripted model: it reads the repository alone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from baton.codex.session_profile import Entry, SessionProfile
from baton.consult.adapters.protocol import Agent, Reply, Runtime
from baton.contract.reply import ReplyFailure
from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import claiming, drop_connection, fail, say, shell, stall, usage_limit
from consult.adapters.cases import ANSWER, SCHEMA
from consult.adapters.conftest import Desk, question

pytestmark = pytest.mark.codex

AGENT = Agent("codex", Runtime.CODEX, model="gpt-5.6-luna", effort="low")


@dataclass(frozen=True)
class Room:
    """A repository, a scripted model and the desk from which Codex is asked about it."""

    desk: Desk
    model: ScriptedModel
    repository: Path

    def ask(self, agent: Agent = AGENT, prompt: str = "ASKED", **more: Any) -> Reply:
        return self.desk.ask(agent, question(prompt, **{"cwd": self.repository, **more}))

    def saw(self) -> str:
        """What the latest command of the agent showed."""
        return self.model.requests[-1].last_output


@pytest.fixture
def room(desk: Desk, codex_binary: Path, test_root: Path) -> Iterator[Room]:
    repository = test_root / "work"
    repository.mkdir()
    (repository / "notes.txt").write_text("IN-THE-REPOSITORY\n")
    (repository / "AGENTS.md").write_text("REPOSITORY-INSTRUCTIONS\n")
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (test_root / "outside.txt").write_text("OUTSIDE\n")
    with ScriptedModel() as model:
        write_simulated_home(Path(desk.house.env["CODEX_HOME"]), model.port)
        yield Room(desk.with_env(BATON_CODEX_BIN=str(codex_binary), DATABASE_URL="SECRET"), model, repository)


def test_it_reads_the_repository_and_neither_writes_nor_looks_outside(room: Room) -> None:
    commands = (
        "cat notes.txt; cat ../outside.txt; echo x > made.txt; echo y >> notes.txt;"
        f" cat {room.desk.house.env['CODEX_HOME']}/config.toml; env; ls {room.desk.house.state.root}"
    )
    room.model.on("ASKED", shell(commands), say(ANSWER))
    reply = room.ask()
    assert (reply.failure, reply.text) == (None, ANSWER)
    saw = room.saw()
    assert "IN-THE-REPOSITORY" in saw
    assert "OUTSIDE" not in saw
    assert "SECRET" not in saw
    assert "model_provider" not in saw
    assert "baton.sqlite3" not in saw
    assert sorted(path.name for path in room.repository.iterdir()) == [".git", "AGENTS.md", "notes.txt"]
    assert (room.repository / "notes.txt").read_text() == "IN-THE-REPOSITORY\n"


def test_the_route_is_attested_and_the_tokens_are_those_of_the_question(room: Room) -> None:
    room.model.on("ASKED", say("one"), say("two"))
    first = room.ask()
    second = room.ask(resume=first.session_id)
    assert (first.model, first.attested) == ("gpt-5.6-luna", True)
    assert (first.text, second.text) == ("one", "two")
    assert first.session_id == second.session_id is not None
    assert first.usage == second.usage is not None
    assert first.usage.total_tokens == 1280
    assert "ASKED" in room.model.requests[1].text
    assert {request.model for request in room.model.requests} == {"gpt-5.6-luna"}
    assert {request.effort for request in room.model.requests} == {"low"}


def test_another_model_that_answers_is_a_failure_and_its_answer_is_kept(room: Room) -> None:
    room.model.on("ASKED", claiming("gpt-9-other", say("one")))
    reply = room.ask()
    assert (reply.failure, reply.text) == (ReplyFailure.ROUTE_MISMATCH, "one")
    assert reply.model == "gpt-9-other"


def test_a_strict_schema_goes_to_the_service_and_another_into_the_prompt(room: Room) -> None:
    loose = {"type": "object", "properties": {"answer": {"type": "string"}}}
    room.model.on("STRICT", say(ANSWER))
    room.model.on("LOOSE", say(f"Here:\n```json\n{ANSWER}\n```"))
    for prompt, schema in (("STRICT", SCHEMA), ("LOOSE", loose)):
        reply = room.ask(prompt=prompt, answer_schema=schema)
        assert (reply.failure, reply.structured) == (None, {"answer": "4"})
    strict, other = room.model.requests
    assert strict.body["text"]["format"]["schema"] == SCHEMA
    assert "JSON Schema" not in strict.text
    assert "format" not in (other.body.get("text") or {})
    assert "JSON Schema" in other.text


def test_neither_the_instructions_of_the_repository_nor_the_web_reach_it_unasked(room: Room) -> None:
    room.model.fallback(say("one"))
    # A model to which Codex offers the service's search also where the service is not OpenAI's.
    agent = replace(AGENT, model="gpt-5.5")
    room.ask(agent, web=True)
    room.ask(replace(agent, web_search=True))
    room.ask(replace(agent, web_search=True), web=True)
    kinds = [{tool["type"] for tool in request.body["tools"]} for request in room.model.requests]
    assert ["web_search" in offered for offered in kinds] == [False, False, True]
    assert "REPOSITORY-INSTRUCTIONS" not in room.model.requests[0].text


@pytest.mark.parametrize(
    ("agent", "failure", "detail"),
    [
        (replace(AGENT, model="gpt-5.6-lunar"), ReplyFailure.UNKNOWN_MODEL, "did you mean 'gpt-5.6-luna'?"),
        (replace(AGENT, effort="enormous"), ReplyFailure.BAD_REQUEST, "no effort enormous"),
    ],
)
def test_a_route_that_is_not_there_is_refused_before_anything_is_asked(
    room: Room, agent: Agent, failure: ReplyFailure, detail: str
) -> None:
    reply = room.ask(agent)
    assert reply.failure is failure
    assert detail in reply.detail
    assert room.model.requests == ()


def test_a_folder_that_the_calling_session_may_not_read_is_not_shown(room: Room) -> None:
    session = SessionProfile(cwd=None, unlimited=False, network=False, entries=(Entry(Path("/usr"), "read"),))
    reply = room.ask(session=session)
    assert reply.failure is ReplyFailure.SCOPE_NOT_ENFORCED
    assert room.model.requests == ()


def test_what_the_calling_session_may_not_read_inside_is_hidden(room: Room) -> None:
    (room.repository / "private.txt").write_text("PRIVATE\n")
    entries = (Entry(Path("/"), "read"), Entry(room.repository / "private.txt", "deny"))
    session = SessionProfile(cwd=room.repository, unlimited=False, network=False, entries=entries)
    room.model.on("ASKED", shell("cat notes.txt private.txt"), say("one"))
    assert room.ask(session=session).text == "one"
    assert "IN-THE-REPOSITORY" in room.saw()
    assert "PRIVATE" not in room.saw()


def test_an_unknown_conversation_is_told(room: Room) -> None:
    reply = room.ask(resume="0199b4a0-0000-7000-8000-000000000000")
    assert reply.failure is ReplyFailure.SESSION_GONE
    assert room.model.requests == ()


def test_failures_are_classed_and_say_what_to_do(room: Room) -> None:
    room.model.on("LOGIN", fail(401))
    room.model.on("LIMIT", usage_limit())
    login, limit = room.ask(prompt="LOGIN"), room.ask(prompt="LIMIT")
    assert (login.failure, login.required_action) == (ReplyFailure.AUTH, "codex login")
    assert limit.failure is ReplyFailure.USAGE_LIMIT
    assert (login.text, login.usage) == (None, None)


def test_an_answer_after_a_lost_connection_is_an_answer(room: Room) -> None:
    room.model.on("ASKED", drop_connection(times=1), say("four"))
    places = room.desk.places()
    reply = room.desk.ask(AGENT, question("ASKED", cwd=room.repository), places)
    assert (reply.text, reply.failure) == ("four", None)
    assert b'"willRetry":true' in places.stdout.read_bytes().replace(b" ", b"")
    assert len(room.model.requests) == 2


def test_silence_ends_it_and_its_events_are_kept(room: Room) -> None:
    room.model.on("ASKED", stall())
    places = room.desk.places()
    asked = question("ASKED", cwd=room.repository, idle_seconds=2.0)
    reply = room.desk.ask(AGENT, asked, places)
    assert reply.failure is ReplyFailure.IDLE_TIMEOUT
    assert b"turn/started" in places.stdout.read_bytes()
    assert room.desk.told[0].event == "started"
