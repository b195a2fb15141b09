"""Starts a process that is to outlive the session that needs it: a run's runner, or a spare one."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

from baton.engine.house import House
from baton.process.environment import RUN_MARKER, WORKER_MARKER


def spawn(house: House, argv: list[str], log: Path, run_id: str, handle: int) -> subprocess.Popen[bytes]:
    """Start a runner's process, which inherits `handle`. Raises `OSError`."""
    with log.open("ab") as output:
        runner = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=house.state.root,
            env=_environment(house, run_id),
            start_new_session=True,
            close_fds=True,
            pass_fds=(handle,),
        )
    # It usually ends before a session does; without somebody who waits it would stay as a zombie.
    threading.Thread(target=runner.wait, name=f"runner {runner.pid}", daemon=True).start()
    return runner


def _environment(house: House, run_id: str) -> dict[str, str]:
    env = {name: value for name, value in house.env.items() if name != WORKER_MARKER}
    # Inherited by git, which is not under a guard: recovery finds it by this.
    env[RUN_MARKER] = run_id
    # The package may come from a checkout or a bundle that is not installed.
    here = str(Path(__file__).resolve().parents[2])
    known = env.get("PYTHONPATH")
    env["PYTHONPATH"] = here if not known else f"{here}{os.pathsep}{known}"
    return env
