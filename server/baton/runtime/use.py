"""Holding an environment: while any process holds it, nobody removes or rebuilds it."""

from __future__ import annotations

import fcntl
import os

from baton.runtime.places import Environment, own_environment


def try_hold(environment: Environment) -> int | None:
    """A descriptor that holds `environment` until it is closed; None while a builder or remover has it.

    The descriptor is not inherited; raises OSError when the lock file cannot be made.
    """
    return _lock(environment.lock, fcntl.LOCK_SH)


def try_own(environment: Environment) -> int | None:
    """A descriptor that keeps everyone else out until it is closed; None while anyone else is in."""
    return _lock(environment.lock, fcntl.LOCK_EX)


def hold_own_environment() -> None:
    """Hold the environment that this process runs from, for life: for every long-lived program's `main`."""
    environment = own_environment()
    if environment is not None:
        try_hold(environment)


def _lock(path: str, kind: int) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
