"""Blocking work of the lower rooms, called from the asynchronous engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from anyio import to_thread

P = ParamSpec("P")
T = TypeVar("T")


async def blocking(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `call` in a thread. It is never abandoned half-way: a cancellation waits for its end."""
    return await to_thread.run_sync(lambda: call(*args, **kwargs))
