"""Starts the process of a run, so that there is no moment in which the run has neither starter nor runner."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from baton.contract.errors import StateUnavailable
from baton.engine.house import House
from baton.engine.spare import SpareRunner
from baton.ledger.locks import FileLock
from baton.process.environment import RUN_MARKER, WORKER_MARKER


def start_runner(house: House, run_id: str, lock: FileLock, spare: SpareRunner | None = None) -> None:
    """Start `baton-runner` for the run, or have the spare one take it, and hand the held run lock over.

    The runner has a session of its own and outlives this process. What it prints goes to a log in the state
    folder. Raises `StateUnavailable` when it cannot be started; the lock is released in any case.
    """
    log = runner_log(house, run_id)
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if spare is None or not spare.give(run_id, lock, log):
            spawn(house, runner_argv(run_id, lock.handle()), log, run_id, lock.handle())
    except OSError as error:
        raise StateUnavailable(f"the runner of {run_id} cannot be started: {error}") from None
    finally:
        # Our own handle; the runner's copy keeps the lock.
        lock.release()


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


def runner_argv(run_id: str, handle: int) -> list[str]:
    """The command that starts a runner from the very environment this process runs from."""
    return [sys.executable, "-m", "baton.engine.runner", run_id, str(handle)]


def runner_log(house: House, run_id: str) -> Path:
    """What the runner of a run prints."""
    return house.state.root / "logs" / f"{run_id}.log"


def _environment(house: House, run_id: str) -> dict[str, str]:
    env = {name: value for name, value in house.env.items() if name != WORKER_MARKER}
    # Inherited by git, which is not under a guard: recovery finds it by this.
    env[RUN_MARKER] = run_id
    # The package may come from a checkout or a bundle that is not installed.
    here = str(Path(__file__).resolve().parents[2])
    known = env.get("PYTHONPATH")
    env["PYTHONPATH"] = here if not known else f"{here}{os.pathsep}{known}"
    return env
