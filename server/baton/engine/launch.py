"""Starts the process of a run, so that there is no moment in which the run has neither starter nor runner."""

from __future__ import annotations

import sys
from pathlib import Path

from baton.contract.errors import StateUnavailable
from baton.engine.house import House
from baton.engine.spare import SpareRunner
from baton.engine.spawn import spawn
from baton.ledger.locks import FileLock


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


def runner_argv(run_id: str, handle: int) -> list[str]:
    """The command that starts a runner from the very environment this process runs from."""
    return [sys.executable, "-m", "baton.engine.runner", run_id, str(handle)]


def runner_log(house: House, run_id: str) -> Path:
    """What the runner of a run prints."""
    return house.state.root / "logs" / f"{run_id}.log"
