"""What the parts of one invocation of a pool share while it works."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from baton.contract.errors import BatonError
from baton.engine.house import House
from baton.engine.stop import Stop
from baton.ledger.base import now as wall_clock
from baton.ledger.store import Ledger
from baton.pool.backend import Backend
from baton.pool.context import PoolContext
from baton.pool.directories import Directories
from baton.pool.events import Tell
from baton.pool.queue import Entry, JobQueue
from baton.pool.recorder import Recorder
from baton.pool.settings import PoolSettings
from baton.pool.throttle import Throttle


@dataclass
class Invocation:
    """One working off of a pool, from its start to its end. For one event loop."""

    house: House
    pool_id: str
    settings: PoolSettings
    tell: Tell
    stop: Stop
    backend: Backend
    ctx: PoolContext | None
    throttle: Throttle
    recorder: Recorder
    directories: Directories
    queue: JobQueue = field(default_factory=JobQueue)
    running: set[Entry] = field(default_factory=set)
    fault: BatonError | None = None
    """Of what everything here stands on: nothing more can be recorded."""
    is_over: bool = False
    """The time of the whole pool is used up."""
    began_at: float = field(default_factory=wall_clock)
    _began: float = field(default_factory=time.monotonic)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def ledger(self) -> Ledger:
        return self.house.ledger

    @property
    def seconds_left(self) -> float | None:
        """Of the whole pool's time; None when it has no end."""
        total = self.settings.total_seconds
        return None if total is None else total - (time.monotonic() - self._began)

    @property
    def stopping(self) -> bool:
        """Whether nothing more may start."""
        by_itself = self.is_over or self.fault is not None or self.throttle.stopping is not None
        return self.stop.asked or by_itself

    @property
    def why_stopping(self) -> str:
        if self.fault is not None:
            return self.fault.message
        if self.stop.asked:
            return self.stop.detail
        return self.throttle.stopping.why if self.throttle.stopping is not None else ""

    def change(self) -> None:
        """Something may start that could not before, or everything has ended."""
        self._changed.set()

    def changes(self) -> anyio.Event:
        """Set at the next change from now on."""
        self._changed = anyio.Event()
        return self._changed

    def note(self, write: Callable[[], None]) -> None:
        """Have something written that nobody waits for."""
        self.recorder.soon(write)

    def halt(self, which: Callable[[Entry], bool]) -> None:
        """Have attempts end early."""
        for entry in self.running:
            if entry.halt is not None and which(entry):
                entry.halt.set()
