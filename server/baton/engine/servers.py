"""The app-servers of one run: one for many threads, another one when it is full or has died."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio

from baton.codex.appserver import AppServer
from baton.contract.errors import CodexFailure

STAGGER_SECONDS = 0.02
"""Between the starts of two threads, so that a full wave does not fall on one process at once."""


@dataclass
class _Used:
    server: AppServer
    threads: int = 0
    served: int = 0


class Servers:
    """Hands out app-servers, each to at most `most` threads at a time.

    One that has served `retire_after` threads gets no more and is ended when the last of them is done: what
    it keeps of each would otherwise add up. The same goes for one that has stopped answering.
    """

    def __init__(
        self, start: Callable[[], Awaitable[AppServer]], most: int, *, retire_after: int | None = None
    ) -> None:
        self._start = start
        self._most = most
        self._retire_after = retire_after
        self._used: list[_Used] = []
        self._lock = anyio.Lock()

    async def warm(self) -> None:
        """Start the first one ahead of need. That it cannot be started is told to whoever needs it."""
        with suppress(CodexFailure):
            async with self.one():
                pass

    @asynccontextmanager
    async def one(self) -> AsyncIterator[AppServer]:
        """A living server with room for one more thread. Raises `CodexFailure` when none can be started."""
        used = await self._room()
        try:
            yield used.server
        finally:
            used.threads -= 1

    async def _room(self) -> _Used:
        async with self._lock:
            for dead in [used for used in self._used if not used.server.alive or self._has_retired(used)]:
                await dead.server.close()
                self._used.remove(dead)
            used = next((used for used in self._used if self._has_room(used)), None)
            if used is None:
                used = _Used(await self._start())
                self._used.append(used)
            elif used.threads:
                await anyio.sleep(STAGGER_SECONDS)
            used.threads += 1
            used.served += 1
            return used

    def _has_room(self, used: _Used) -> bool:
        return used.threads < self._most and not self._is_worn(used)

    def _has_retired(self, used: _Used) -> bool:
        return used.threads == 0 and self._is_worn(used)

    def _is_worn(self, used: _Used) -> bool:
        old = self._retire_after is not None and used.served >= self._retire_after
        return old or not used.server.answers

    async def close(self) -> None:
        """End all of them."""
        async with self._lock:
            while self._used:
                await self._used.pop().server.close()
