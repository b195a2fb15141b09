"""A program that kills itself at the step named by `BATON_TEST_STEP`, the first time that it gets there.

With an id and a handle it is the process that asks, with `consult` a session that does not wait.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from baton.consult import runner, service
from baton.consult.content import Content
from baton.consult.service import ConsultService
from baton.contract.base import parse
from baton.contract.consult import ConsultCall
from baton.contract.session import Session
from baton.engine.house import House
from baton.ledger.locks import FileLock
from baton.ledger.store import Ledger
from consult import scripted

ASKER_STEPS: dict[str, tuple[Any, str]] = {
    "start": (Ledger, "start_consult_turn"),
    "ask": (runner, "ask"),
    "raw": (Content, "put_raw"),
    "refer": (Ledger, "refer_to_consult_artifacts"),
    "end": (Ledger, "end_consult_turn"),
    "settle": (Ledger, "settle_consultation"),
    "remove": (FileLock, "remove"),
}

SESSION_STEPS: dict[str, tuple[Any, str]] = {
    "plan": (service, "make_plan"),
    "text": (Content, "put_text"),
    "begin": (Ledger, "begin_consultation"),
    "refer": (Ledger, "refer_to_consult_artifacts"),
    "start": (ConsultService, "begin"),
}


def arm(steps: dict[str, tuple[Any, str]]) -> None:
    """Make the named step deadly: `before-end` or `after-end`."""
    when, _, name = os.environ["BATON_TEST_STEP"].partition("-")
    done = Path(os.environ["BATON_TEST_DONE"])
    if done.exists() or name not in steps:
        return
    owner, attribute = steps[name]
    original = getattr(owner, attribute)

    def die() -> None:
        done.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, attribute, _deadly(original, die, when))


def _deadly(original: Callable[..., Any], die: Callable[[], None], when: str) -> Callable[..., Any]:
    if asyncio.iscoroutinefunction(original):

        @functools.wraps(original)
        async def later(*args: Any, **kwargs: Any) -> Any:
            if when == "before":
                die()
            await original(*args, **kwargs)
            die()

        return later

    @functools.wraps(original)
    def at_once(*args: Any, **kwargs: Any) -> Any:
        if when == "before":
            die()
        result = original(*args, **kwargs)
        # A place that is not given is no step.
        if result is not False:
            die()
        return result

    return at_once


def start(house: House, consultation_id: str, lock: FileLock) -> None:
    scripted.start(house, consultation_id, lock, module="consult.killed")


def main() -> None:
    if sys.argv[1] == "consult":
        arm(SESSION_STEPS)
        call = parse(
            ConsultCall, {"question": sys.argv[2], "targets": ["claude"], "waitSeconds": 0}, "consult"
        )
        with House.open() as house:
            door = ConsultService(house, scripted.look, scripted.start, scripted.adapter_of)
            anyio.run(door.consult, call, Session(cwd=sys.argv[3], model="gpt-6.2-sol"))
        return
    arm(ASKER_STEPS)
    sys.exit(runner.run(sys.argv[1], int(sys.argv[2]), scripted.adapter_of, start))


if __name__ == "__main__":
    main()
