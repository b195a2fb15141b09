"""Removes the state folder, where nothing is at work in it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from baton.contract.errors import StateUnavailable, WrongState
from baton.ledger.locks import is_held
from baton.ledger.state import StateFolder

_AT_WORK = {"run": "baton runs list", "pool": "baton pool list", "consultation": "baton history"}
"""Kinds of work whose process holds a lock for life, and the command that shows them."""


def purge_state(env: Mapping[str, str], dry_run: bool) -> str:
    """Remove runs, results and environments; one line that says so.

    Raises `WrongState` while a run, pool or consultation is at work, `StateUnavailable` when something cannot
    be removed. The program that calls this may run from there: nothing can be loaded afterwards.
    """
    state = StateFolder.find(env)
    for kind, look in _AT_WORK.items():
        if any(is_held(lock) for lock in sorted(state.locks.glob(f"{kind}-*.lock"))):
            raise WrongState(f"a {kind} is at work: see `{look}`; cancel it or wait, then purge")
    if dry_run:
        return f"the state folder {state.root} would be removed"
    try:
        shutil.rmtree(state.root)
    except OSError as error:
        raise StateUnavailable(f"{error.filename} cannot be removed: {error.strerror}") from None
    return f"the state folder {state.root} is removed"
