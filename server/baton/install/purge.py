"""Removes the state folder, where nothing is at work in it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from baton.contract.errors import StateUnavailable, WrongState
from baton.ledger.locks import is_held
from baton.ledger.state import StateFolder


def purge_state(env: Mapping[str, str], dry_run: bool) -> str:
    """Remove runs, results and environments; one line that says so.

    Raises `WrongState` while a run is at work, `StateUnavailable` when something cannot be removed. The
    program that calls this may run from there: nothing can be loaded afterwards.
    """
    state = StateFolder.find(env)
    if any(is_held(lock) for lock in sorted(state.locks.glob("run-*.lock"))):
        raise WrongState("a run is at work: see `baton runs list`; cancel it or wait, then purge")
    if dry_run:
        return f"the state folder {state.root} would be removed"
    try:
        shutil.rmtree(state.root)
    except OSError as error:
        raise StateUnavailable(f"{error.filename} cannot be removed: {error.strerror}") from None
    return f"the state folder {state.root} is removed"
