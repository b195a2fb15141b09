"""The doctor's real task: one file in a folder of its own, by a worker with the person's login."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from baton.contract.errors import BatonError
from baton.contract.session import Session
from baton.contract.task import TaskCall
from baton.engine.house import House
from baton.engine.service import Service
from baton.install.findings import Finding, failure, ok, warning

OBJECTIVE = "Write the single word baton, in lower case, into the file answer.txt. Do nothing else."
CHECK = "grep -qx baton answer.txt"
WAIT_SECONDS = 280


def run_live(env: Mapping[str, str]) -> tuple[Finding, dict[str, Any]]:
    """Run the task; what it came to, with the tokens it cost. Never raises for what goes wrong."""
    try:
        with House.open(env) as house:
            folder = Path(tempfile.mkdtemp(dir=house.state.scratch.parent, prefix="live-"))
            try:
                result = anyio.run(_delegate, Service(house), folder)
                there = (folder / "answer.txt").is_file()
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except (BatonError, OSError, subprocess.SubprocessError) as error:
        return failure("live", f"the task could not be run: {error}"), {}
    return _judge(result, there), result


async def _delegate(service: Service, folder: Path) -> dict[str, Any]:
    (folder / "README").write_text("A folder for one task of the doctor's.\n", encoding="utf-8")
    call = TaskCall(
        objective=OBJECTIVE,
        allowed_files=["answer.txt"],
        verification_commands=[CHECK],
        wait_seconds=WAIT_SECONDS,
        label="baton doctor",
    )
    return await service.delegate_task(call, Session(cwd=str(folder)))


def _judge(result: Mapping[str, Any], there: bool) -> Finding:
    usage = result.get("usage") or {}
    reported = [f"{name} {value}" for name, value in usage.items() if value is not None]
    spent = ", ".join(reported) or "none reported"
    route = result.get("route") or {}
    cost = f"run {result.get('runId')}; {route.get('model') or 'model not reported'}; tokens: {spent}"
    verdict = result.get("verdict")
    if verdict == "verified" and there:
        return ok("live", f"one real task was verified and applied ({cost})")
    reasons = "; ".join(map(str, result.get("reasons") or ())) or result.get("next") or "no reason given"
    if verdict == "verified":
        return warning(
            "live", f"one real task was verified but not applied ({cost})", str(result.get("next"))
        )
    return failure("live", f"the task ended {verdict or result.get('state')}: {reasons} ({cost})")
