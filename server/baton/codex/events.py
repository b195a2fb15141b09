"""What the app-server reports of one thread, queued until somebody listens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from baton.contract.errors import CodexFailure


@dataclass(frozen=True)
class Notification:
    """One notification of the app-server. A declined request appears as `declined/<method>`."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)


def is_passing(method: str) -> bool:
    """True for what only shows that something is going on: fragments and running totals, never kept."""
    return method.lower().endswith("delta") or method in (
        "turn/diff/updated",
        "item/fileChange/patchUpdated",
        "item/commandExecution/terminalInteraction",
    )


class ThreadEvents:
    """A queue without a limit: passing events are not queued, they only count as activity."""

    def __init__(self) -> None:
        self._queue: deque[Notification] = deque()
        self._woken = asyncio.Event()
        self._failure: CodexFailure | None = None
        self.last_activity: float | None = None
        """When anything arrived last, on the clock of `anyio.current_time`."""

    def put(self, event: Notification) -> None:
        self.last_activity = anyio.current_time()
        if not is_passing(event.method):
            self._queue.append(event)
        self._woken.set()

    def fail(self, failure: CodexFailure) -> None:
        """Nothing more will come: listeners get what is queued, then this failure."""
        self._failure = failure
        self._woken.set()

    def drain(self) -> tuple[Notification, ...]:
        """Take what is queued and forget when it came, before a new turn."""
        queued = tuple(self._queue)
        self._queue.clear()
        self.last_activity = None
        return queued

    async def next(self, until: float) -> Notification | None:
        """The next event; None when the time `until` has come or there was only activity.

        Raises the `CodexFailure` that ended the stream once the queue is empty.
        """
        if not self._queue and self._failure is None:
            self._woken.clear()
            with anyio.move_on_after(until - anyio.current_time()):
                await self._woken.wait()
        if self._queue:
            return self._queue.popleft()
        if self._failure is not None:
            raise self._failure
        return None
