"""What is found of the agents' command lines. Fakes that print what the real ones print stand for logins."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

from baton.consult import find
from baton.consult.adapters.program import number_in
from baton.consult.adapters.protocol import Runtime
from baton.consult.find import Found, LoggedIn, find_agents
from baton.simulate.script import Say
from baton.simulate.service import KEY, ScriptedService
from consult.adapters.conftest import CACHE, Desk, real

Script = Callable[[str, str], str]


def found_at(here: Desk, commands: Mapping[Runtime, str | None], **more: object) -> dict[Runtime, Found]:
    async def look() -> list[Found]:
        return await find_agents(here.house, commands, only=tuple(commands), **more)  # type: ignore[arg-type]

    return {one.runtime: one for one in anyio.run(look)}


def program(script: Script, version: str, body: str) -> str:
    """A fake that tells its version and help, and else does what `body` says."""
    return script(
        "program",
        "import sys, os\n"
        f"if sys.argv[1] == '--version': print({version!r}); sys.exit()\n"
        "if sys.argv[1] == '--help': print('--tools'); sys.exit()\n" + body,
    )


def test_what_is_not_installed_is_told_with_the_command_that_installs_it(desk: Desk) -> None:
    others = [runtime for runtime in Runtime if runtime is not Runtime.CODEX]
    found = found_at(desk.with_env(PATH="/nowhere"), dict.fromkeys(others))
    for one in found.values():
        assert (one.program, one.usable, one.login) == (None, False, LoggedIn.UNKNOWN)
        assert one.action
        assert "not on PATH" in one.detail
    assert found[Runtime.CLAUDE].action == "npm install -g @anthropic-ai/claude-code"


@pytest.mark.parametrize(
    ("told", "login", "action"),
    [
        ({"loggedIn": True, "authMethod": "claude.ai"}, LoggedIn.YES, None),
        ({"loggedIn": False, "authMethod": "none"}, LoggedIn.NO, "claude auth login"),
        ({"loggedIn": "perhaps"}, LoggedIn.UNKNOWN, None),
        ([], LoggedIn.UNKNOWN, None),
    ],
)
def test_the_login_of_claude(
    desk: Desk,
    script: Script,
    told: object,
    login: LoggedIn,
    action: str | None,
) -> None:
    command = program(script, "2.1.332 (Claude Code)", f"print({json.dumps(told)!r}); sys.exit(1)")
    one = found_at(desk, {Runtime.CLAUDE: command})[Runtime.CLAUDE]
    assert (one.version, one.login, one.action) == ("2.1.332", login, action)
    assert one.usable is (login is not LoggedIn.NO)


@pytest.mark.parametrize(
    ("told", "login", "providers"),
    [
        ("└  0 credentials\n", LoggedIn.NO, ()),
        ("●  \x1b[90mOpenAI api\x1b[0m\n●  DeepSeek api\n└  2 credentials", LoggedIn.YES,
         ("OpenAI api", "DeepSeek api")),
        ("└  0 credentials\n●  OpenAI OPENAI_API_KEY\n└  1 environment variable", LoggedIn.YES,
         ("OpenAI OPENAI_API_KEY",)),
        ("something else", LoggedIn.UNKNOWN, ()),
    ],
)  # fmt: skip
def test_the_logins_of_opencode(
    desk: Desk,
    script: Script,
    told: str,
    login: LoggedIn,
    providers: tuple[str, ...],
) -> None:
    command = program(script, "1.18.33", f"print({told!r})")
    one = found_at(desk, {Runtime.OPENCODE: command})[Runtime.OPENCODE]
    assert (one.version, one.login, one.providers) == ("1.18.33", login, providers)


@pytest.mark.parametrize(
    ("answer", "login"),
    [
        ({"error": {"code": -32000, "message": "Authentication required"}}, LoggedIn.NO),
        ({"result": {"sessionId": "x"}}, LoggedIn.YES),
        ({"error": {"code": -32603, "message": "Internal error"}}, LoggedIn.UNKNOWN),
    ],
)
def test_the_login_of_copilot_is_asked_in_its_own_home(
    desk: Desk,
    script: Script,
    answer: Mapping[str, object],
    login: LoggedIn,
) -> None:
    body = f"""import json
if '--acp' not in sys.argv: sys.exit(2)
open(os.environ['COPILOT_HOME'] + '/seen', 'w').close()
for line in sys.stdin:
    asked = json.loads(line)
    told = {answer!r} if asked['id'] == 2 else {{'result': {{}}}}
    print(json.dumps({{'id': asked['id'], **told}}), flush=True)
"""
    one = found_at(desk, {Runtime.COPILOT: program(script, "1.0.102", body)})[Runtime.COPILOT]
    home = desk.house.state.root / "agents" / "copilot" / "home"
    assert one.login is login
    assert one.action == (f"COPILOT_HOME={home} copilot login" if login is LoggedIn.NO else None)
    assert (home / "seen").exists()


def test_a_look_that_hangs_is_bounded_and_leaves_nothing(
    desk: Desk,
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(find, "LOOK_SECONDS", 1.0)
    hanging = program(script, "1.2.3", "import time; time.sleep(600)")
    commands = dict.fromkeys((Runtime.CLAUDE, Runtime.OPENCODE, Runtime.COPILOT), hanging)
    for one in found_at(desk, commands).values():
        assert (one.login, one.version) == (LoggedIn.UNKNOWN, "1.2.3")


def test_a_program_that_does_not_tell_its_version_cannot_be_used(desk: Desk, script: Script) -> None:
    one = found_at(desk, {Runtime.CLAUDE: script("claude", "raise SystemExit(3)")})[Runtime.CLAUDE]
    assert (one.usable, one.version) == (False, None)
    assert "--version" in one.detail and "status 3" in one.detail


def test_no_file_with_a_login_is_opened(desk: Desk, own_home: Path, script: Script) -> None:
    """Files that would make whoever opens them wait for ever."""
    for name in (".claude/.credentials.json", ".local/share/opencode/auth.json", ".copilot/config.json"):
        (own_home / name).parent.mkdir(parents=True)
        os.mkfifo(own_home / name)
    told = program(script, "1.2.3", "print('{}')")
    commands = dict.fromkeys((Runtime.CLAUDE, Runtime.OPENCODE, Runtime.ANTIGRAVITY), told)
    assert len(found_at(desk, commands)) == 3


def test_what_is_shown_holds_no_value_of_a_key(desk: Desk, script: Script) -> None:
    command = program(script, "2.1.332", """print('{"loggedIn": true, "authMethod": "api_key"}')""")
    one = found_at(desk.with_env(ANTHROPIC_API_KEY="sk-secret"), {Runtime.CLAUDE: command})[Runtime.CLAUDE]
    assert one.login is LoggedIn.YES
    assert "sk-secret" not in json.dumps(one.wire())


def test_version_numbers() -> None:
    assert number_in("GitHub Copilot CLI 1.0.102.\nRun 'copilot update'") == "1.0.102"
    assert number_in("2.1.332 (Claude Code)") == "2.1.332"
    assert number_in("codex-cli 0.171.0-alpha.3") == "0.171.0-alpha.3"
    assert number_in("none") is None


@pytest.mark.long
def test_the_real_ones_are_found_logged_out_without_asking_any_model(desk: Desk) -> None:
    commands = {runtime: real(runtime) for runtime in (Runtime.CLAUDE, Runtime.OPENCODE, Runtime.COPILOT)}
    here = desk.with_env(HTTPS_PROXY="http://127.0.0.1:9", XDG_CACHE_HOME=str(CACHE))
    for one in found_at(here, commands).values():
        assert one.version is not None
        assert (one.login, one.usable) == (LoggedIn.NO, False), one
        assert one.action is not None


@pytest.mark.long
def test_the_real_ones_are_found_logged_in_without_asking_any_model(desk: Desk) -> None:
    commands = {runtime: real(runtime) for runtime in (Runtime.CLAUDE, Runtime.OPENCODE, Runtime.COPILOT)}
    with ScriptedService(Say("x")) as service:
        here = desk.with_env(
            ANTHROPIC_BASE_URL=service.root,
            ANTHROPIC_API_KEY=KEY,
            DEEPSEEK_API_KEY=KEY,
            COPILOT_PROVIDER_BASE_URL=service.url,
            COPILOT_PROVIDER_API_KEY=KEY,
            COPILOT_MODEL="simulated-1",
            COPILOT_OFFLINE="true",
            XDG_CACHE_HOME=str(CACHE),
        )
        for one in found_at(here, commands).values():
            assert (one.login, one.usable, one.action) == (LoggedIn.YES, True, None), one
            assert KEY not in json.dumps(one.wire())
        assert service.asked == ()
