"""How much of a pool runs at once, and when nothing may start: one place that decides, told of every end.

Additive increase, multiplicative decrease: a service that limits halves what runs at once, each round of
successes adds one. A limit pauses the whole pool for as long as the service said; a usage limit and a missing
login stop it; a class of failures that comes again and again opens a breaker. The clock and the dice are
given, so all of this is decided without waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from baton.contract.evidence import TurnFailure
from baton.contract.states import FailureClass
from baton.pool.trouble import TREATMENTS, Trouble, backoff

WARM_UP_SECONDS = 30.0
"""An attempt that has not been answered within this does not keep the others waiting any longer."""

PROBE_SECONDS = 5.0
"""The first pause of an open breaker; each one that follows is twice as long."""

MAX_TRIPS = 4
"""So many times in a row the breaker may open before the pool stops."""

TIMES_IN_A_ROW = 12
"""Pauses without a success between them after which the pool stops."""


@dataclass(frozen=True)
class Stopping:
    """Why the pool stops by itself."""

    why: str
    back_at: float | None = None
    """When it is worth coming back, seconds since 1970, where that is known."""


class Throttle:
    """Not for several threads. Times are those of `clock`, seconds."""

    def __init__(
        self,
        concurrency: int,
        *,
        clock: Callable[[], float],
        dice: Callable[[], float],
        backoff_seconds: float,
        pause_seconds: float,
        breaker_failures: int,
        warms_up: bool,
        token_budget: int | None = None,
        tokens: int | None = None,
    ) -> None:
        """`dice` gives numbers from 0 to 1. `tokens` were spent before, by earlier invocations.

        A stated wait beyond `pause_seconds` stops the pool, as a usage limit does. `breaker_failures` of one
        class in a row, with no success between, open the breaker.
        """
        self.most = concurrency
        self.limit = concurrency
        self.stopping: Stopping | None = None
        self.paused_until: float | None = None
        self.why: str | None = None
        """Why it is paused."""
        self.breaker: str | None = None
        """Why the breaker is open; None when it is closed."""
        self.tokens = tokens
        self._budget = token_budget
        self._clock = clock
        self._dice = dice
        self._backoff = max(backoff_seconds, 0.05)
        self._longest = pause_seconds
        self._breaker_failures = breaker_failures
        self._warm = not warms_up
        self._warm_at: float | None = None
        self._successes = 0
        self._pauses = 0
        self._trips = 0
        self._row: tuple[Trouble | None, int] = (None, 0)

    # -- questions ---------------------------------------------------------------------------------

    def room(self, running: int) -> int:
        """How many attempts may start now beside `running` ones."""
        now = self._clock()
        if self.stopping is not None or (self.paused_until is not None and now < self.paused_until):
            return 0
        if self.paused_until is not None:
            self.paused_until, self.why = None, None
        return max(0, self._allowed(now) - running)

    def wakes_at(self) -> float | None:
        """When `room` may become greater by itself; None when only an end can make it so."""
        times = [time for time in (self.paused_until, self._warm_until()) if time is not None]
        return min(times) if times else None

    def live(self) -> dict[str, JsonValue]:
        """What watchers are to see; times are those of the clock."""
        return {
            "limit": self.limit,
            "most": self.most,
            "pausedUntil": self.paused_until,
            "why": self.why,
            "breaker": self.breaker,
            "backAt": self.stopping.back_at if self.stopping else None,
        }

    # -- what happens ------------------------------------------------------------------------------

    def started(self) -> None:
        """An attempt has started."""
        if not self._warm and self._warm_at is None:
            self._warm_at = self._clock()

    def answered(self) -> bool:
        """The service answers: the others may start. Whether that is news."""
        news, self._warm = not self._warm, True
        return news

    def stop(self, why: str, back_at: float | None = None) -> None:
        """Nothing more may start; the first reason stays."""
        self._stop(why, back_at)

    def spent(self, tokens: int | None) -> None:
        """Tokens of an attempt that has ended."""
        if tokens is not None:
            self.tokens = (self.tokens or 0) + tokens
        if self._budget is not None and (self.tokens or 0) >= self._budget:
            spent = f"{self.tokens} of {self._budget} tokens"
            self._stop(f"the token budget is used up ({spent}); go on with a higher --token-budget")

    def succeeded(self) -> None:
        """An attempt has ended well."""
        self._warm = True
        self._row = (None, 0)
        self._pauses = self._trips = 0
        self.breaker = None
        if self.limit < self.most:
            self._successes += 1
            if self._successes >= self.limit:
                self.limit += 1
                self._successes = 0

    def failed(self, trouble: Trouble, failure: TurnFailure | None) -> None:
        """An attempt has ended otherwise."""
        treatment = TREATMENTS[trouble]
        before, times = self._row
        self._row = (trouble, times + 1 if trouble == before else 1)
        self._warm_at = None  # the next one may try to be the first that is answered
        if treatment.stops:
            self._stop_for(trouble, failure)
        elif treatment.pauses:
            self._pause_for(trouble, failure)
        elif treatment.breaks and self._row[1] >= self._breaker_failures:
            self._break(trouble, failure, passes=treatment.probes)

    # -- decisions ---------------------------------------------------------------------------------

    def _allowed(self, now: float) -> int:
        if self.breaker is not None:
            return 1
        warm_until = self._warm_until()
        if not self._warm and (warm_until is None or now < warm_until):
            return 1
        return self.limit

    def _warm_until(self) -> float | None:
        return None if self._warm or self._warm_at is None else self._warm_at + WARM_UP_SECONDS

    def _stop_for(self, trouble: Trouble, failure: TurnFailure | None) -> None:
        said = f": {failure.message}" if failure else ""
        if trouble is FailureClass.AUTH:
            self._stop(f"Codex is not logged in, or its login is refused{said}; run `codex login`")
        else:
            self._stop(f"the usage limit is reached{said}", self._time_of(failure))

    def _pause_for(self, trouble: Trouble, failure: TurnFailure | None) -> None:
        stated = failure.retry_after_seconds if failure else None
        said = f": {failure.message}" if failure else ""
        if stated is not None and stated > self._longest:
            self._stop(f"the service wants a long wait{said}", self._time_of(failure))
            return
        now = self._clock()
        already = self.paused_until is not None and now < self.paused_until
        if not already:
            # Of a wave that is refused together, one refusal counts.
            self._pauses += 1
            self.limit = max(1, self.limit // 2)
            self._successes = 0
            if self._pauses >= TIMES_IN_A_ROW:
                self._stop(f"the service refused {self._pauses} times in a row{said}")
                return
        wait = stated if stated is not None else backoff(self._backoff, self._pauses, self._longest)
        # A little more than was asked for, never less.
        until = now + wait * (1.0 + 0.1 * self._dice())
        if not already or (stated is not None and until > (self.paused_until or 0.0)):
            self.paused_until, self.why = until, f"{trouble.value}{said}"

    def _break(self, trouble: Trouble, failure: TurnFailure | None, *, passes: bool) -> None:
        if self.breaker is not None and self.paused_until is not None and self._clock() < self.paused_until:
            return  # others of the same wave
        said = f", last: {failure.message}" if failure else ""
        what = f"{self._row[1]} attempts in a row ended with {trouble.value}{said}"
        self._trips += 1
        if not passes or self._trips >= MAX_TRIPS:
            self._stop(what)
            return
        self.breaker = what
        wait = PROBE_SECONDS * 2 ** (self._trips - 1)
        self.paused_until, self.why = self._clock() + wait * (1.0 + 0.1 * self._dice()), what

    def _stop(self, why: str, back_at: float | None = None) -> None:
        if self.stopping is None:
            self.stopping = Stopping(" ".join(why.split()), back_at)

    def _time_of(self, failure: TurnFailure | None) -> float | None:
        stated = failure.retry_after_seconds if failure else None
        return None if stated is None else self._clock() + stated
