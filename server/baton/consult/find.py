"""Which agents' command lines are here: program, version, and whether they are logged in.

No model is asked. Every look is what the program itself offers for that, bounded in time; no login is ever
opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import anyio

from baton.codex import binary
from baton.codex.home import Login
from baton.consult.adapters import claude, codex, copilot, opencode
from baton.consult.adapters.output import table_of
from baton.consult.adapters.program import (
    empty_room,
    environment,
    find_program,
    number_in,
    own_folder,
    version_of,
)
from baton.consult.adapters.protocol import CannotAsk, Runtime
from baton.contract.errors import BatonError, Unsupported
from baton.contract.reply import ReplyFailure
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.engine.worker_home import worker_home
from baton.process.child import Child, open_child, read_lines, run

LOOK_SECONDS = 30.0
"""For one look at a login. The slowest needs two, and some more when it unpacks itself first."""

USUAL: Mapping[Runtime, str] = {
    Runtime.CODEX: "codex",
    Runtime.CLAUDE: "claude",
    Runtime.OPENCODE: "opencode",
    Runtime.COPILOT: "copilot",
    Runtime.ANTIGRAVITY: "agy",
}
"""The names of the programs on PATH."""

INSTALL: Mapping[Runtime, str] = {
    Runtime.CODEX: binary.INSTALL,
    Runtime.CLAUDE: "npm install -g @anthropic-ai/claude-code",
    Runtime.OPENCODE: "npm install -g opencode-ai",
    Runtime.COPILOT: "npm install -g @github/copilot",
    Runtime.ANTIGRAVITY: "see its vendor's own instructions",
}


class LoggedIn(StrEnum):
    """What a command line says of its login. `yes` means that it has one, not that the service takes it."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """It could not be asked, or offers no way to ask."""


@dataclass(frozen=True)
class Found:
    """One command line on this machine."""

    runtime: Runtime
    program: Path | None = None
    version: str | None = None
    login: LoggedIn = LoggedIn.UNKNOWN
    detail: str = ""
    """One line on the login, or on why the program cannot be used."""
    action: str | None = None
    """The exact command that installs it, or logs it in."""
    providers: tuple[str, ...] = ()
    """Providers that it has a login for, where it has several."""

    @property
    def usable(self) -> bool:
        """Whether a question to it has a chance."""
        return self.program is not None and self.version is not None and self.login is not LoggedIn.NO

    def wire(self) -> dict[str, Any]:
        """JSON-ready."""
        data = {
            "runtime": self.runtime.value,
            "program": None if self.program is None else str(self.program),
            "version": self.version,
            "login": self.login.value,
            "usable": self.usable,
            "detail": self.detail or None,
            "action": self.action,
            "providers": list(self.providers) or None,
        }
        return {name: value for name, value in data.items() if value is not None}


async def find_agents(
    house: House,
    commands: Mapping[Runtime, str | None] | None = None,
    *,
    names: tuple[str, ...] = (),
    only: Collection[Runtime] = tuple(Runtime),
) -> list[Found]:
    """Every command line, or `only` these; looked at side by side, at most `LOOK_SECONDS` each.

    `commands` are programs to look at instead of the usual names, `names` variables that are passed on beside
    the usual ones. Never raises for one that is not there.
    """
    found: dict[Runtime, Found] = {}

    async def look(runtime: Runtime) -> None:
        command = (commands or {}).get(runtime)
        try:
            found[runtime] = await _LOOKS[runtime](house, command, names)
        except CannotAsk as fault:
            found[runtime] = Found(runtime, detail=fault.message, action=_remedy(runtime, command, fault))
        except (BatonError, OSError) as fault:
            found[runtime] = Found(runtime, detail=" ".join(str(fault).split()))

    async with anyio.create_task_group() as tasks:
        for runtime in only:
            tasks.start_soon(look, runtime)
    return [found[runtime] for runtime in Runtime if runtime in only]


def _remedy(runtime: Runtime, command: str | None, fault: CannotAsk) -> str | None:
    """What to do. Installing is no help where a program was named that is not there."""
    if fault.required_action is not None or fault.failure is not ReplyFailure.NOT_INSTALLED:
        return fault.required_action
    if command is not None:
        return f"name another program than {command} as the agent's command in your policy, or leave that out"
    return INSTALL[runtime]


async def _codex(house: House, command: str | None, names: tuple[str, ...]) -> Found:
    launcher = None if command is None else str(find_program(command, house.env))
    try:
        program = await blocking(binary.find_codex, house.env, launcher)
    except Unsupported as fault:
        action = binary.codex_remedy(house.env)
        raise CannotAsk(ReplyFailure.NOT_INSTALLED, fault.message, action) from fault
    home = await blocking(worker_home, house)
    known = home.login is not Login.NONE
    return Found(
        Runtime.CODEX,
        program.path,
        str(program.version),
        LoggedIn.YES if known else LoggedIn.NO,
        f"login: {home.login.value}" if known else "no login",
        None if known else codex.LOGIN,
    )


async def _claude(house: House, command: str | None, names: tuple[str, ...]) -> Found:
    env = environment(house, (*claude.NAMES, *names), CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1")
    program = find_program(command or USUAL[Runtime.CLAUDE], env)
    version = number_in(await blocking(version_of, program, house, env, "--help"))
    told = table_of(await _say(house, Runtime.CLAUDE, (str(program), "auth", "status"), env))
    if told is None or not isinstance(told.get("loggedIn"), bool):
        return Found(Runtime.CLAUDE, program, version, detail="it does not tell whether it is logged in")
    known = told["loggedIn"] is True
    return Found(
        Runtime.CLAUDE,
        program,
        version,
        LoggedIn.YES if known else LoggedIn.NO,
        f"login: {told.get('authMethod')}" if known else "no login",
        None if known else claude.LOGIN,
    )


async def _opencode(house: House, command: str | None, names: tuple[str, ...]) -> Found:
    folder = own_folder(house, Runtime.OPENCODE, "config")
    env = environment(house, (*_KEYS, *names), XDG_CONFIG_HOME=str(folder)) | dict(opencode.OFF)
    program = find_program(command or USUAL[Runtime.OPENCODE], env)
    version = number_in(await blocking(version_of, program, house, env))
    await blocking(opencode.fill_config_home, house, version)
    told = await _say(house, Runtime.OPENCODE, (str(program), "auth", "list"), env)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", told)
    if not re.search(r"\d+ credentials?\b", plain):
        return Found(Runtime.OPENCODE, program, version, detail="it does not tell which logins it has")
    providers = tuple(dict.fromkeys(line.strip("● ").strip() for line in plain.splitlines() if "●" in line))
    return Found(
        Runtime.OPENCODE,
        program,
        version,
        LoggedIn.YES if providers else LoggedIn.NO,
        f"logins: {', '.join(providers)}" if providers else "no login",
        None if providers else opencode.LOGIN,
        providers,
    )


async def _copilot(house: House, command: str | None, names: tuple[str, ...]) -> Found:
    home = await blocking(copilot.own_home, house)
    env = environment(house, (*copilot.NAMES, *names), COPILOT_HOME=str(home), COPILOT_AUTO_UPDATE="false")
    program = copilot.native_program(find_program(command or USUAL[Runtime.COPILOT], env))
    version = number_in(await blocking(version_of, program, house, env))
    room = await blocking(empty_room, house, Runtime.COPILOT)
    argv = (str(program), "--acp", "--no-auto-update", "--disable-builtin-mcps", "--no-custom-instructions")
    answer: Mapping[str, Any] | None = None
    errors = own_folder(house, "programs") / "copilot-look.log"
    with anyio.move_on_after(LOOK_SECONDS):
        async with await open_child(argv, cwd=room, env=env, stderr=errors) as child:
            answer = await _new_session(child, room)
    if answer is None:
        return Found(Runtime.COPILOT, program, version, detail="it does not tell whether it is logged in")
    error = answer.get("error")
    if not isinstance(error, Mapping):
        return Found(Runtime.COPILOT, program, version, LoggedIn.YES, "it opens a session")
    message = str(error.get("message"))
    if error.get("code") == -32000 or "uthenticat" in message:
        action = copilot.login_command(home)
        return Found(Runtime.COPILOT, program, version, LoggedIn.NO, "no login in its own home", action)
    return Found(Runtime.COPILOT, program, version, detail=" ".join(message.split())[:200])


async def _new_session(child: Child, room: Path) -> Mapping[str, Any] | None:
    """What it answers to a session without a question: no model is asked for that."""
    hello = {"protocolVersion": 1, "clientCapabilities": {}}
    wanted = {"cwd": str(room), "mcpServers": []}
    for number, method, params in ((1, "initialize", hello), (2, "session/new", wanted)):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            await child.stdin.send(json.dumps(message).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return None
    async for line in read_lines(child.stdout):
        answer = table_of(line)
        if answer is not None and answer.get("id") == 2:
            return answer
    return None


async def _antigravity(house: House, command: str | None, names: tuple[str, ...]) -> Found:
    env = environment(house, names)
    program = find_program(command or USUAL[Runtime.ANTIGRAVITY], env)
    version = number_in(await blocking(version_of, program, house, env))
    detail = "experimental: it cannot be contained, and does not tell whether it is logged in"
    return Found(Runtime.ANTIGRAVITY, program, version, detail=detail)


async def _say(house: House, runtime: Runtime, argv: tuple[str, ...], env: Mapping[str, str]) -> str:
    """What a short command prints, whatever its exit status; empty when it takes too long."""
    room = await blocking(empty_room, house, runtime)
    try:
        done = await run(argv, cwd=room, env=env, timeout=LOOK_SECONDS, errors_apart=True)
    except OSError as error:
        raise CannotAsk(ReplyFailure.NOT_INSTALLED, f"{argv[0]} cannot be started: {error}") from error
    return "" if done.timed_out else done.output.decode("utf-8", "replace").strip()


_KEYS = (
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "GEMINI_API_KEY"),
    *("GROQ_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY", "AWS_*", "AZURE_*", "GOOGLE_*"),
)
"""Variables that OpenCode takes for a login; what else there is, a person adds by `pass_to_agents`."""

_Look = Callable[[House, str | None, tuple[str, ...]], Awaitable[Found]]

_LOOKS: Mapping[Runtime, _Look] = {
    Runtime.CODEX: _codex,
    Runtime.CLAUDE: _claude,
    Runtime.OPENCODE: _opencode,
    Runtime.COPILOT: _copilot,
    Runtime.ANTIGRAVITY: _antigravity,
}
