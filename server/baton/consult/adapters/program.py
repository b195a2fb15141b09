"""What adapters share in starting a program: where it is, its version, its environment, its settings."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.codex.version_cache import VersionCache
from baton.consult.adapters.protocol import Agent, CannotAsk, Invocation
from baton.contract.errors import InvalidInput
from baton.contract.nearest import did_you_mean
from baton.contract.reply import ReplyFailure
from baton.engine.house import House
from baton.process.environment import tool_environment
from baton.process.there import is_file, program_on_path

ANSWER_SECONDS = 20.0
"""How long a program may take to tell its version; the slowest needs one second on an idle machine."""

XDG = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")


def find_program(command: str, env: Mapping[str, str]) -> Path:
    """The program, by its absolute path or its name on PATH. Raises `CannotAsk` when it is not there."""
    path = Path(os.path.expanduser(command))  # noqa: PTH111
    if path.is_absolute():
        if is_file(path) and os.access(path, os.X_OK):
            return path
        raise CannotAsk(ReplyFailure.NOT_INSTALLED, f"{path} is not there or cannot be executed")
    if len(path.parts) != 1:
        raise InvalidInput(f"command must be a name on PATH or an absolute path, not {command!r}")
    found = program_on_path(command, env)
    if found is None:
        raise CannotAsk(ReplyFailure.NOT_INSTALLED, f"{command} is not on PATH")
    return found


def environment(house: House, names: Iterable[str] = (), **values: str) -> dict[str, str]:
    """The environment of a program: the person's home, proxies and authorities, the names, the values.

    Raises `CannotAsk` without a HOME: the programs would take the one of the account, whoever asks.
    """
    env = {**tool_environment(house.env, (*XDG, *names)), **values}
    if not Path(env.get("HOME") or ".").is_absolute():
        raise CannotAsk(ReplyFailure.NOT_INSTALLED, "HOME is not set to an absolute path", "set HOME")
    return env


def own_folder(house: House, runtime: str, *names: str) -> Path:
    """A folder of a runtime below the state folder, made when absent, readable by its owner alone."""
    folder = house.state.root / "agents" / runtime
    for part in (folder.parent, folder, *(folder.joinpath(*names[: n + 1]) for n in range(len(names)))):
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder.joinpath(*names)


def empty_room(house: House, runtime: str) -> Path:
    """The working folder of agents that see only what they are given: always the same, and always empty.

    Always the same because a program finds a conversation again by the folder in which it was begun.
    """
    return own_folder(house, runtime, "room")


def check_extra(agent: Agent, known: Mapping[str, type]) -> Mapping[str, Any]:
    """The agent's settings for its runtime. Raises `InvalidInput` for an unknown one or a wrong kind."""
    for name, value in agent.extra.items():
        if name not in known:
            advice = did_you_mean(name, sorted(known))
            raise InvalidInput(f"agents.{agent.id}.settings.{name}: unknown setting; {advice}")
        wanted = known[name]
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise InvalidInput(
                f"agents.{agent.id}.settings.{name}: expected {wanted.__name__}, got {value!r}"
            )
    return agent.extra


@dataclass(frozen=True)
class Program:
    """A program that can be run for an agent."""

    path: Path
    env: Mapping[str, str]
    """Its whole environment."""
    extra: Mapping[str, Any]
    """The agent's settings for it, checked."""

    def asked(self, argv: Iterable[str], room: Path, prompt: bytes) -> Invocation:
        """One question: the program with these arguments in its empty room, the prompt on standard input."""
        return Invocation(argv=(str(self.path), *argv), env=self.env, cwd=room, stdin=prompt)


def program_of(
    agent: Agent,
    house: House,
    usual: str,
    *,
    known: Mapping[str, type] | None = None,
    names: Iterable[str] = (),
    **values: str,
) -> Program:
    """The agent's program, by its `usual` name unless the person names another.

    `known` are the settings that it takes besides `env`. Its environment has the variables `names`, those
    that the person adds for all agents or for this one by `env = ["NAME"]`, and the `values`. Raises
    `InvalidInput` for settings that cannot be, `CannotAsk` when the program is not there.
    """
    extra = check_extra(agent, {"env": list, **(known or {})})
    own = extra.get("env", ())
    if not all(isinstance(name, str) for name in own):
        raise InvalidInput(f"agents.{agent.id}.settings.env: expected names of variables")
    env = environment(house, (*names, *agent.env_names, *own), **values)
    return Program(find_program(agent.command or usual, env), env, extra)


def version_of(program: Path, house: House, env: Mapping[str, str], *asks: str) -> str:
    """What the program answers to its `--version` and to `asks`, remembered while its file stays the same.

    Only a native program is remembered: behind a version manager's shim the program changes unseen.

    Raises `CannotAsk` when it does not answer.
    """
    cache = VersionCache(own_folder(house, "programs") / "answers.json")
    native = is_native(program)
    known = cache.get(program) if native else None
    if known is None:
        known = "\n".join(_answer(program, option, env) for option in ("--version", *asks))
        if native:
            cache.put(program, known)
    return known


def number_in(answer: str) -> str | None:
    """The first version number in a program's answer."""
    hit = re.search(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]*[0-9A-Za-z])?", answer)
    return hit.group() if hit else None


def is_native(program: Path) -> bool:
    """Whether the file is the program itself and not a script or shim that picks one."""
    try:
        with program.open("rb") as file:
            return file.read(4) in (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
    except OSError:
        return False


def _answer(program: Path, option: str, env: Mapping[str, str]) -> str:
    try:
        child = subprocess.Popen(
            [program, option],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise _silent(program, option, error.strerror or "") from error
    with child:
        try:
            output, _ = child.communicate(timeout=ANSWER_SECONDS)
        except subprocess.TimeoutExpired as error:
            # The whole group: a loader's own child would keep the pipe open.
            os.killpg(child.pid, signal.SIGKILL)
            raise _silent(program, option, f"no answer within {ANSWER_SECONDS:g} s") from error
    if child.returncode != 0:
        raise _silent(program, option, f"status {child.returncode}")
    return output.decode("utf-8", "replace").strip()


def _silent(program: Path, option: str, why: str) -> CannotAsk:
    return CannotAsk(ReplyFailure.NOT_INSTALLED, f"{program} {option} does not answer: {why}")


def prompt_bytes(prompt: str) -> bytes:
    """The prompt for standard input. Raises `InvalidInput` when there is none."""
    if not prompt.strip():
        raise InvalidInput("the question is empty")
    return prompt.encode("utf-8", "replace")
