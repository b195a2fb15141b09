"""The real command lines against the scripted services; skipped, saying so, where one is absent."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest

from baton.consult.adapters.protocol import Agent, Runtime
from baton.consult.sessions import database_of, forget
from baton.contract.reply import ReplyFailure
from baton.simulate.script import Call, Say, Stall
from baton.simulate.service import ScriptedService
from consult.adapters.cases import ANSWER, CASES, SCHEMA, Case
from consult.adapters.conftest import CACHE, Desk, agent_at, question, real
from consult.adapters.test_recorded import agrees

pytestmark = pytest.mark.long

EACH = [(Runtime(runtime), case) for runtime, cases in CASES.items() for case in cases]

THREE = (Runtime.CLAUDE, Runtime.OPENCODE, Runtime.COPILOT)

TOOLS = {
    Runtime.CLAUDE: Call("Bash", {"command": "touch {mark}", "description": "d"}),
    Runtime.OPENCODE: Call("bash", {"command": "touch {mark}", "description": "d"}),
    Runtime.COPILOT: Call("bash", {"command": "touch {mark}", "description": "d"}),
}


@pytest.mark.parametrize(("runtime", "case"), EACH, ids=[f"{runtime}-{case.name}" for runtime, case in EACH])
def test_the_real_program_ends_as_the_table_says(desk: Desk, runtime: Runtime, case: Case) -> None:
    command = real(runtime)
    with ScriptedService(*case.answers) as service:
        agent, env = agent_at(runtime, service, command)
        asked = question(answer_schema=SCHEMA if case.with_schema else None, idle_seconds=case.idle_seconds)
        reply = desk.with_env(**env).ask(agent, asked)
        requests = service.asked
    agrees(reply, case)
    if case.name == "silent":
        assert requests
    elif reply.failure is ReplyFailure.LOOP:
        # It may have asked once more while it was being ended.
        assert case.requests <= len(requests) < 40
    else:
        assert len(requests) == case.requests
    assert all(request.headers for request in requests)
    assert _left(desk) == []


@pytest.mark.parametrize("runtime", THREE)
def test_no_tool_is_offered_and_a_forced_one_does_nothing(
    desk: Desk, own_home: Path, test_root: Path, runtime: Runtime
) -> None:
    """Also where the person's own settings, hooks, servers and variables would allow everything."""
    command, mark = real(runtime), test_root / "mark"
    _permissive(own_home, mark)
    call = TOOLS[runtime]
    forced = Call(call.tool, {**call.arguments, "command": f"touch {mark}"})
    with ScriptedService(forced, Say("four")) as service:
        agent, env = agent_at(runtime, service, command)
        reply = desk.with_env(**env, COPILOT_ALLOW_ALL="true", OPENCODE_PERMISSION='{"*":"allow"}').ask(
            agent, question()
        )
        requests = service.asked
    assert (reply.failure, reply.text) == (None, "four")
    assert requests[0].tools == ()
    assert "PERSON-INSTRUCTIONS" not in requests[0].text
    assert not mark.exists()
    assert not list(test_root.glob("mark-*"))
    assert "What is 2+2?" in requests[0].text


@pytest.mark.parametrize("runtime", THREE)
def test_a_conversation_goes_on(desk: Desk, runtime: Runtime) -> None:
    command = real(runtime)
    with ScriptedService(Say("four"), Say("six")) as service:
        agent, env = agent_at(runtime, service, command)
        here = desk.with_env(**env)
        first = here.ask(agent, question("FIRST-QUESTION"))
        second = here.ask(agent, question("SECOND-QUESTION", resume=first.session_id))
        requests = service.asked
    assert (first.text, second.text) == ("four", "six")
    assert first.session_id == second.session_id is not None
    assert "FIRST-QUESTION" in requests[1].text
    assert first.usage == second.usage is not None
    assert first.cost == second.cost


@pytest.mark.parametrize("runtime", THREE)
def test_an_unknown_conversation_is_told_and_no_model_is_asked(desk: Desk, runtime: Runtime) -> None:
    command = real(runtime)
    gone = "ses_dd44d896effe63zEbzHnqPiVW3" if runtime is Runtime.OPENCODE else str(uuid.uuid4())
    with ScriptedService(Say("four")) as service:
        agent, env = agent_at(runtime, service, command)
        reply = desk.with_env(**env).ask(agent, question(resume=gone))
        assert reply.failure is ReplyFailure.SESSION_GONE
        assert service.asked == ()


@pytest.mark.parametrize("runtime", (Runtime.CLAUDE, Runtime.COPILOT))
def test_a_long_question_reaches_the_model_whole(desk: Desk, runtime: Runtime) -> None:
    """As an argument it would not fit."""
    command = real(runtime)
    text = "- " + "word " * 60_000 + "THE-END"
    with ScriptedService(Say("four")) as service:
        agent, env = agent_at(runtime, service, command)
        assert desk.with_env(**env).ask(agent, question(text)).text == "four"
        assert "THE-END" in service.asked[0].text


def test_no_conversation_is_left_behind_when_none_is_to_be_kept(desk: Desk, own_home: Path) -> None:
    command = real(Runtime.CLAUDE)
    with ScriptedService(Say("four")) as service:
        agent, env = agent_at(Runtime.CLAUDE, service, command)
        reply = desk.with_env(**env).ask(agent, question(keep_session=False))
    assert (reply.text, reply.session_id) == ("four", None)
    assert not list(own_home.glob(".claude/projects/*/*.jsonl"))


def test_claude_is_not_logged_in(desk: Desk) -> None:
    command = real(Runtime.CLAUDE)
    reply = desk.ask(Agent("claude", Runtime.CLAUDE, command), question())
    assert (reply.failure, reply.required_action) == (ReplyFailure.AUTH, "claude auth login")


def test_copilot_is_not_logged_in_and_is_told_the_command_for_its_own_home(desk: Desk) -> None:
    command = real(Runtime.COPILOT)
    # Nothing of this goes beyond loopback: the way out is a proxy that nobody serves.
    here = desk.with_env(HTTPS_PROXY="http://127.0.0.1:9", XDG_CACHE_HOME=str(CACHE))
    reply = here.ask(Agent("copilot", Runtime.COPILOT, command), question())
    assert reply.failure is ReplyFailure.AUTH
    home = desk.house.state.root / "agents" / "copilot" / "home"
    assert reply.required_action == f"COPILOT_HOME={home} copilot login"


def test_copilot_without_its_native_program_is_ended_with_all_that_its_loader_started(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal to npm's loader alone would leave the native program running."""
    command = real(Runtime.COPILOT)
    monkeypatch.setattr("baton.consult.adapters.copilot.native_program", lambda program: program)
    with ScriptedService(Stall()) as service:
        agent, env = agent_at(Runtime.COPILOT, service, command)
        reply = desk.with_env(**env).ask(agent, question(idle_seconds=10.0))
        assert reply.failure is ReplyFailure.IDLE_TIMEOUT
        assert service.asked
    assert _left(desk) == []


def test_what_opencode_keeps_lies_in_the_state_folder_and_not_in_the_person_s(
    desk: Desk, own_home: Path
) -> None:
    command = real(Runtime.OPENCODE)
    with ScriptedService(Say(ANSWER)) as service:
        agent, env = agent_at(Runtime.OPENCODE, service, command)
        reply = desk.with_env(**env).ask(agent, question())
    assert reply.text == ANSWER
    assert not list(own_home.glob(".local/share/opencode/*.db"))
    assert not (own_home / ".config" / "opencode").exists()
    config = desk.house.state.root / "agents" / "opencode" / "config" / "opencode"
    assert list((config / "node_modules").iterdir()) == []  # nothing was fetched
    assert database_of(desk.house, reply.session_id or "").exists()
    assert forget(desk.house, Runtime.OPENCODE, reply.session_id or "")
    assert list((desk.house.state.root / "agents" / "opencode" / "sessions").iterdir()) == []


def _left(desk: Desk) -> list[str]:
    """Processes of the agents that still run: all of them have this test's home in their variables."""
    left = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == desk.house.env["HOME"]:
                left.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return left


def _permissive(home: Path, mark: Path) -> None:
    """The settings of a person who lets everything happen, each leaving a mark of its own."""
    hook = {"hooks": [{"type": "command", "command": f"touch {mark}-claude-hook"}]}
    claude: dict[str, Any] = {
        "permissions": {"allow": ["Bash", "Write", "Read"], "defaultMode": "bypassPermissions"},
        "hooks": {name: [hook] for name in ("SessionStart", "UserPromptSubmit", "Stop", "PreToolUse")},
        "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"},
    }
    server = {"command": "touch", "args": [f"{mark}-claude-server"]}
    opencode = {
        "permission": {"*": "allow"},
        "mcp": {"m": {"type": "local", "command": ["touch", f"{mark}-opencode-server"], "enabled": True}},
    }
    plugin = f"export const P = async ({{$}}) => {{ await $`touch {mark}-opencode-plugin`; return {{}} }}\n"
    copilot_server = {
        "m": {"type": "local", "command": "touch", "args": [f"{mark}-copilot-server"], "tools": ["*"]}
    }
    files = {
        ".claude/settings.json": json.dumps(claude),
        ".claude/CLAUDE.md": "PERSON-INSTRUCTIONS",
        ".claude.json": json.dumps({"mcpServers": {"m": server}}),
        ".config/opencode/opencode.json": json.dumps(opencode),
        ".config/opencode/AGENTS.md": "PERSON-INSTRUCTIONS",
        ".config/opencode/plugin/p.js": plugin,
        ".copilot/mcp-config.json": json.dumps({"mcpServers": copilot_server}),
        ".copilot/copilot-instructions.md": "PERSON-INSTRUCTIONS",
    }
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
