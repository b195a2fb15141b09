"""A limit that one task met is no news to the others: whoever would ask for that model waits as well.

The pause is in the ledger, so it holds for every run on this machine. One that is longer than a task may wait
ends what would have asked next in the runs at work, resumable; a run that begins or is resumed later asks for
itself, since the person may have another login by then.
"""

from __future__ import annotations

import time
from math import ceil

import anyio

from baton.contract.errors import BatonError
from baton.contract.evidence import AttemptResult, Decision
from baton.contract.states import FailureClass
from baton.engine.context import RunContext


class HeldBack(BatonError):
    """Raised when a service asked for a longer pause than a task may wait; nothing was asked of it."""

    code = "held_back"


def note_limit(ctx: RunContext, model: str, result: AttemptResult, decision: Decision) -> None:
    """Have the others wait for the model, when the service limited the rate of this attempt."""
    failure = result.evidence.turn_failure
    if failure is None or failure.failure_class is not FailureClass.RATE_LIMIT:
        return
    stated = failure.retry_after_seconds
    seconds = decision.wait_seconds if stated is None else stated
    if seconds:
        ctx.house.ledger.pause_model(model, time.time() + seconds, "the service limits the rate of requests")


async def until_free(ctx: RunContext, task_id: str, model: str) -> None:
    """Wait for the end of the model's pause, or until the run is told to stop. Raises `HeldBack`."""
    longest = ctx.policy.escalation.wait_seconds
    told = False
    while not ctx.stop.asked:
        pause = ctx.house.ledger.model_pause(model)
        left = pause.until - time.time() if pause is not None else 0.0
        if pause is None or left <= 0:
            return
        if left > longest:
            if pause.noted_at < ctx.began:
                return
            raise HeldBack(
                f"{pause.why} of {model} for {left:.0f} s more, longer than escalation.wait_seconds;"
                " not asked until then"
            )
        if not told:
            ctx.note("task.paused", task_id, model=model, seconds=ceil(left), why=pause.why)
            told = True
        with anyio.move_on_after(left):
            await ctx.stop.wait()
