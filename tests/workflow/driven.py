"""Brings a workflow to its end from wherever it is; killed right after its nth commit to the ledger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio

from baton.consult.service import ConsultService
from baton.contract.base import parse
from baton.contract.session import Session
from baton.contract.workflow import WorkflowCall
from baton.engine.house import House
from baton.engine.service import Service
from baton.review.service import ReviewService
from baton.workflow.doors import ground_of
from baton.workflow.history import Job
from baton.workflow.service import WorkflowService
from consult.scripted import look
from review import scripted
from review.killed import kill_after

HOST = "gpt-6.2-sol"

BINDINGS = {"plan": "ask:codex", "implement": "patch:codex", "review": "ask:opencode"}

WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
PATCH = (
    "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n"
    " def add(a, b):\n-    return a - b\n+    return a + b\n"
)


def said(answer: str, structured: Any = None) -> dict[str, Any]:
    """What an agent's program is scripted to answer."""
    empty: dict[str, Any] = {"assumptions": [], "uncertainties": [], "followUps": [], "sources": []}
    more = {} if structured is None else {"structured": structured}
    return {"text": json.dumps({"answer": answer, **empty, **more})}


def service_of(house: House) -> WorkflowService:
    consulting = ConsultService(house, look, scripted.start, scripted.adapter_of)
    return WorkflowService(consulting, ReviewService(consulting), Service(house))


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


async def drive(house: House, folder: Path) -> dict[str, Any]:
    """Do what every answer says is next, from wherever the newest workflow is."""
    service, session = service_of(house), Session(cwd=str(folder), model=HOST)
    known = house.ledger.workflows(1)
    name = known[0].workflow_id if known else None

    async def call(action: str, **arguments: Any) -> dict[str, Any]:
        given: dict[str, Any] = {"action": action, "waitSeconds": 60, **arguments}
        if action != "start":
            given["id"] = name
        return await service.workflow(parse(WorkflowCall, given, "workflow"), session)

    told = await call("next") if name else await call("start", goal="Right sums.", bindings=BINDINGS)
    name = told["workflowId"]
    for _ in range(40):
        match told["state"]:
            case "completed" | "needs_attention" | "cancelled":
                return told
            case "brief":
                told = await call("record", step="brief", text="In calc.py.")
            case "apply":
                told = await call("record", step="apply", commit=apply(house, str(name), folder))
            case "test":
                told = await call("record", step="test", report={"command": "check", "exitCode": 0})
            case "synthesise":
                told = await call("record", step="synthesise", text="Fine.")
            case _:
                told = await call("next", **({"confirm": told["confirm"]} if "confirm" in told else {}))
    raise AssertionError(f"it does not come to an end: {told}")


def apply(house: House, name: str, folder: Path) -> str:
    """Take over what was made, once."""
    if (folder / "calc.py").read_text() == WRONG:
        job = Job.read(house, name)
        ground = ground_of(house, job.workflow)
        made = job.made
        assert made is not None
        git(folder, "fetch", "-q", str(ground.repo.path), ground.ref(made.number))
        git(folder, "cherry-pick", "FETCH_HEAD")
    return git(folder, "rev-parse", "HEAD")


if __name__ == "__main__":
    with House.open() as opened:
        kill_after(int(sys.argv[1]))
        anyio.run(drive, opened, Path(sys.argv[2]))
    os._exit(0)
