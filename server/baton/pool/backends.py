"""Which back end carries out what."""

from __future__ import annotations

from baton.pool.backend import Backend
from baton.pool.backend_app_server import AppServerBackend
from baton.pool.backend_exec import ExecBackend
from baton.pool.backend_isolated import IsolatedBackend
from baton.pool.context import PoolContext
from baton.pool.settings import PoolSettings


def make_backend(ctx: PoolContext, settings: PoolSettings) -> Backend:
    """The back end that the settings name."""
    if settings.backend == "exec":
        return ExecBackend(ctx)
    return AppServerBackend(ctx, start_seconds=settings.start_seconds)


def make_isolated(ctx: PoolContext) -> Backend:
    """The back end of isolated jobs, whatever the settings name."""
    return IsolatedBackend(ctx)
