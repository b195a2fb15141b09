"""A session that had a run has the next one carried by a runner that was ready for it."""

from __future__ import annotations

import anyio
import pytest

from baton.contract.base import parse
from baton.contract.session import Session
from baton.contract.task import TaskCall
from baton.engine.house import House
from baton.engine.service import Service
from baton.simulate.workers import honest
from e2e.sim import Sim

pytestmark = pytest.mark.codex


def test_the_second_run_is_carried_by_the_spare_runner(sim: Sim) -> None:
    place = sim.workspace("spare", {"a": ""})
    objectives = [sim.script(f"spare {n}", *honest({"a": f"{n}\n"})) for n in (1, 2)]
    service = Service(House.open(sim.env), keeps_spare=True)
    assert service.spare is not None
    runners, spares = [], []
    try:
        for objective in objectives:
            arguments = {
                "objective": objective,
                "allowedFiles": ["a"],
                "verificationCommands": ["true"],
                "workspace": str(place.path),
            }
            call = parse(TaskCall, arguments, "delegate_task")
            answer = anyio.run(service.delegate_task, call, Session())
            assert answer["integration"] == "applied", answer
            recorded = service.house.ledger.processes(answer["runId"], open_only=False)
            runners.append(next(one.pid for one in recorded if one.kind == "runner"))
            waiting = service.spare._waiting
            assert waiting is not None
            spares.append(waiting[0].pid)
    finally:
        service.close()
    assert runners[1] == spares[0] != runners[0]
    assert place.read("a") == "2\n"
