"""How much of a pool may run at once, and why not more: for watchers, whenever it has changed."""

from __future__ import annotations

from functools import partial

from pydantic import JsonValue

from baton.pool.events import PoolEvent
from baton.pool.invocation import Invocation


class Showing:
    """Remembers what was shown last."""

    def __init__(self, inv: Invocation) -> None:
        self._inv = inv
        self._last: dict[str, JsonValue] = {}

    def show(self) -> None:
        """Write down and tell what has changed."""
        inv = self._inv
        live = _live(inv)
        if live == self._last:
            return
        before, self._last = self._last, live
        inv.note(partial(self._write, live))
        if not before:
            before = {"pausedUntil": None, "limit": live["limit"], "breaker": None}
        if live["pausedUntil"] != before["pausedUntil"]:
            if live["pausedUntil"] is None:
                inv.tell(PoolEvent("pool.resumed"))
            else:
                why = live["why"] if live["why"] != live["breaker"] else None
                inv.tell(PoolEvent("pool.paused", data={"until": live["pausedUntil"], "why": why}))
        if live["limit"] != before["limit"]:
            inv.tell(PoolEvent("pool.limit", data={"limit": live["limit"]}))
        if live["breaker"] is not None and live["breaker"] != before["breaker"]:
            inv.tell(PoolEvent("pool.breaker", data={"why": live["breaker"]}))

    def _write(self, live: dict[str, JsonValue]) -> None:
        self._inv.ledger.update_pool(self._inv.pool_id, durable=False, live=live)


def _live(inv: Invocation) -> dict[str, JsonValue]:
    live = inv.throttle.live()
    if live["pausedUntil"] is None and inv.throttle.stopping is None:
        held = inv.queue.held_back()
        if held is not None:
            live |= {"pausedUntil": held.until, "why": f"{held.why} of {held.model}"}
    return live
