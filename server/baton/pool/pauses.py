"""A limit of the rate that one attempt met holds on this whole machine, for whoever asks for that model.

The pause is in the ledger, where delegated tasks keep theirs as well. A pool starts nothing for a model that
is paused; jobs of other models go on. A pause that is longer than the pool may wait stops it, as one that it
was told of itself; but one that was there before it began does not: then it asks for itself, since the person
may have another login by then.
"""

from __future__ import annotations

from functools import partial

from baton.contract.states import FailureClass
from baton.ledger.base import now as wall_clock
from baton.pool.attempt import Attempted
from baton.pool.invocation import Invocation

WHY = "the service limits the rate of requests"


def note_limit(inv: Invocation, model: str, done: Attempted) -> None:
    """Have everybody wait for the model, when the service limited the rate of this attempt.

    To be called after the throttle was told, which knows how long where the service did not say.
    """
    if done.trouble is not FailureClass.RATE_LIMIT:
        return
    stated = None if done.failure is None else done.failure.retry_after_seconds
    until = inv.throttle.paused_until if stated is None else wall_clock() + stated
    if until is not None:
        inv.note(partial(inv.ledger.pause_model, model, until, WHY))


def heed_pauses(inv: Invocation) -> None:
    """Hold the jobs of the models that are paused on this machine."""
    for pause in inv.ledger.model_pauses():
        left = pause.until - wall_clock()
        if left <= inv.settings.pause_seconds:
            inv.queue.hold(pause.model, pause.until, pause.why)
        elif pause.noted_at >= inv.began_at and inv.queue.has(pause.model):
            inv.throttle.stop(f"{pause.why} of {pause.model}", back_at=pause.until)
