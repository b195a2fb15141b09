"""Reviewers of scripted programs, and the process that asks them instead of the real ones."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from baton.consult.adapters.protocol import Adapter, Agent, Invocation, Places, Question, Runtime
from baton.consult.runner import run
from baton.contract.errors import StateUnavailable
from baton.engine.house import House
from baton.engine.spawn import spawn
from baton.ledger.locks import FileLock
from consult.scripted import Scripted

PROGRAM = Path(__file__).with_name("reviewer_program.py")


class Reviewer(Scripted):
    """Its program does what the script of the state folder says for this agent and call."""

    def prepare(self, agent: Agent, question: Question, places: Places) -> Invocation:
        script = places.house.state.root / "script"
        argv = (sys.executable, "-B", str(PROGRAM), agent.id, str(script), question.resume or "-")
        return Invocation(argv, {"PATH": os.environ["PATH"]}, places.scratch, question.prompt.encode())


def adapter_of(runtime: Runtime) -> Adapter:
    return Reviewer(runtime)


def start(house: House, consultation_id: str, lock: FileLock) -> None:
    """As the real start, with a process that asks the scripted programs."""
    output = house.state.root / "logs" / f"{consultation_id}.log"
    output.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        argv = [sys.executable, "-B", "-m", "review.scripted", consultation_id, str(lock.handle())]
        tests = str(PROGRAM.parents[1])
        known = house.env.get("PYTHONPATH")
        env = {**house.env, "PYTHONPATH": tests if not known else f"{tests}{os.pathsep}{known}"}
        spawn(
            House(env, house.state, house.ledger, house.artifacts),
            argv,
            output,
            consultation_id,
            lock.handle(),
        )
    except OSError as error:
        raise StateUnavailable(str(error)) from None
    finally:
        lock.release()


def never_starts(_: House, __: str, lock: FileLock) -> None:
    """In the place of `start`: as if this process had been killed just before it."""
    lock.release()


class Script:
    """What each reviewer does, call by call; and what it was given."""

    def __init__(self, house: House) -> None:
        self.root = house.state.root / "script"
        self.root.mkdir(exist_ok=True)

    def says(self, agent: str, *calls: dict[str, Any]) -> None:
        """One entry for each call; the last one goes on."""
        (self.root / f"{agent}.json").write_text(json.dumps(calls))

    def prompts(self, agent: str) -> list[str]:
        """What was sent to it, in order."""
        found = sorted(self.root.glob(f"{agent}.*.prompt"), key=lambda path: int(path.suffixes[-2][1:]))
        return [path.read_text() for path in found]

    def resumed(self, agent: str, call: int) -> str:
        return (self.root / f"{agent}.{call}.resume").read_text()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], int(sys.argv[2]), adapter_of, start))
