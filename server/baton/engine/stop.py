"""A request to stop, seen by everything that works for a run."""

from __future__ import annotations

from enum import StrEnum

import anyio

from baton.contract.states import FailureClass


class StopReason(StrEnum):
    """Why work ends before it is done."""

    CANCELLED = "cancelled"
    """Somebody asked for it."""
    INTERRUPTED = "interrupted"
    """The owner went away, a signal came, or the run's time is over; it can be resumed."""


class Stop:
    """Set once; whoever works looks at it between steps and waits for it beside a turn."""

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self.detail = ""
        self.failure_class: FailureClass | None = None
        """The class of what ended it, where that is a failure."""
        self._event = anyio.Event()

    def ask(self, reason: StopReason, detail: str, failure_class: FailureClass | None = None) -> None:
        """The first reason stays, except that a cancellation replaces an interruption."""
        if self.reason is None or (self.reason is StopReason.INTERRUPTED and reason is StopReason.CANCELLED):
            self.reason, self.detail, self.failure_class = reason, detail, failure_class
        self._event.set()

    @property
    def asked(self) -> bool:
        return self.reason is not None

    async def wait(self) -> None:
        await self._event.wait()
