"""An adapter for the scripted program, and the process that asks with it instead of the real ones."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from baton.consult.adapters.protocol import (
    Adapter,
    Agent,
    Exit,
    Invocation,
    Places,
    Question,
    Reply,
    Runtime,
    Sees,
    Watcher,
)
from baton.consult.agents import Known
from baton.consult.runner import run
from baton.contract.errors import InvalidInput, StateUnavailable
from baton.contract.evidence import Usage
from baton.contract.reply import ReplyFailure
from baton.engine.house import House
from baton.engine.spawn import spawn
from baton.ledger.locks import FileLock

PROGRAM = Path(__file__).with_name("agent_program.py")


class Scripted:
    """Only Codex can be held to reading; only Codex and Claude can search the web."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def runtime(self) -> Runtime:
        return self._runtime

    @property
    def sees(self) -> Sees:
        return Sees.REPOSITORY if self._runtime is Runtime.CODEX else Sees.GIVEN

    @property
    def web(self) -> bool:
        return self._runtime in (Runtime.CODEX, Runtime.CLAUDE)

    def prepare(self, agent: Agent, question: Question, places: Places) -> Invocation:
        if agent.extra:
            raise InvalidInput(f"settings: unknown keys {sorted(agent.extra)}")
        told = [agent.id, str(question.cwd), question.resume or "-", "web" if question.web else "no-web"]
        env = {"PATH": os.environ["PATH"], "BATON_WORKER": "1"}
        env |= {name: places.house.env[name] for name in agent.env_names if name in places.house.env}
        argv = (sys.executable, "-B", str(PROGRAM), *told)
        return Invocation(argv, env, places.scratch, question.prompt.encode())

    def watcher(self) -> Watcher:
        return lambda line: None

    def read(self, agent: Agent, question: Question, places: Places, ended: Exit) -> Reply:
        told: Mapping[str, Any] = {}
        for line in places.stdout.read_bytes().splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            told = found if isinstance(found, dict) else told
        usage = told.get("usage")
        text = told.get("text")
        try:
            structured = json.loads(text) if isinstance(text, str) else None
        except ValueError:
            structured = None
        failure = told.get("failure")
        if failure is None and ended.code != 0 and ended.kill is None:
            failure = ReplyFailure.CRASH
        return Reply(
            text=text,
            structured=structured,
            session_id=told.get("session_id"),
            model=told.get("model"),
            attested=told.get("model") is not None,
            usage=None if usage is None else Usage.model_validate(usage),
            cost=told.get("cost"),
            failure=None if failure is None else ReplyFailure(failure),
            detail="" if failure is None else f"the program says {failure}",
        )


def adapter_of(runtime: Runtime) -> Adapter:
    return Scripted(runtime)


async def look(house: House, agent: Agent) -> Known:
    """Every program is there but those whose command says otherwise."""
    missing = f"{agent.command} is not installed" if agent.command else None
    return Known(missing, "1.0", True)


def start(house: House, consultation_id: str, lock: FileLock, module: str = "consult.scripted") -> None:
    """As the real start, with a process that asks the scripted program."""
    output = house.state.root / "logs" / f"{consultation_id}.log"
    output.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        argv = [sys.executable, "-B", "-m", module, consultation_id, str(lock.handle())]
        tests = str(PROGRAM.parents[1])
        known = house.env.get("PYTHONPATH")
        env = {**house.env, "PYTHONPATH": tests if not known else f"{tests}{os.pathsep}{known}"}
        at = House(env, house.state, house.ledger, house.artifacts)
        spawn(at, argv, output, consultation_id, lock.handle())
    except OSError as error:
        raise StateUnavailable(str(error)) from None
    finally:
        lock.release()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], int(sys.argv[2]), adapter_of, start))
