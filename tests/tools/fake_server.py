"""The full server with a service that does nothing but what its arguments say; run as a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio

from baton.contract.calls import ControlCall, InspectCall, WaitCall
from baton.contract.errors import NotFound
from baton.contract.session import Session
from baton.contract.task import TaskCall
from baton.runtime.groups import enabled_groups
from baton.tools import server as tools_server
from baton.tools.server import build_server, serve


class FakeService:
    """`runId` (or `objective`) chooses what happens."""

    def __init__(self) -> None:
        self._opened = anyio.Event()
        self._cancelled: list[str] = []

    async def delegate_task(self, call: TaskCall, session: Session) -> dict[str, Any]:
        return {"runId": "r1", "state": "done", "verdict": "verified", "length": len(call.objective)}

    async def wait_run(self, call: WaitCall, session: Session) -> dict[str, Any]:
        """Waits until `control_run` opens the gate."""
        try:
            await self._opened.wait()
        except anyio.get_cancelled_exc_class():
            self._cancelled.append(call.run_id)
            raise
        return {"runId": call.run_id, "state": "done", "next": "inspect\nit"}

    async def inspect_run(self, call: InspectCall, session: Session) -> dict[str, Any]:
        if call.run_id == "unknown":
            raise NotFound("no run unknown:\nlist them")
        if call.run_id == "broken":
            raise RuntimeError("a fault\nin the engine")
        if call.run_id == "noisy":
            print("stray output")
            child = "import sys; print('stray child', len(sys.stdin.read()))"
            subprocess.run([sys.executable, "-c", child], check=True)
        return {
            "runId": call.run_id,
            "session": session.wire(),
            "pid": os.getpid(),
            "cancelled": self._cancelled,
            "cwd": str(Path.cwd()),
        }

    async def control_run(self, call: ControlCall, session: Session) -> dict[str, Any]:
        self._opened.set()
        return {"runId": call.run_id, "state": "done"}


def main() -> None:
    tools_server.PROGRESS_SECONDS = 0.05
    worker = os.environ.get("BATON_WORKER") == "1"
    anyio.run(serve, build_server(FakeService, worker=worker, groups=enabled_groups(os.environ)))


if __name__ == "__main__":
    main()
