"""Which runs have had their time. Pure: nothing is looked up here and nothing removed."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from baton.contract.states import RunState
from baton.ledger.records import RunRecord

DAY = 24 * 3600.0

SETTLED = (RunState.DONE, RunState.CANCELLED)
"""Nothing is left to be decided about these; only they go when there is too much."""

YOUNG_SECONDS = 3600.0
"""However much there is, what came to rest within this time stays: somebody may just be reading it."""


@dataclass(frozen=True)
class Sized:
    """A run and the bytes that would be given back with it, as far as they can be told apart."""

    run: RunRecord
    size: int


@dataclass(frozen=True)
class Decided:
    """Whether a run goes, and the line that says why."""

    run: RunRecord
    size: int
    removed: bool
    why: str


def decide(
    runs: Sequence[Sized], now: float, days: float, max_bytes: int, needed: Set[str] = frozenset()
) -> list[Decided]:
    """Decide about every run, the longest at rest first.

    A run goes `days` after it came to rest. When what stays is more than `max_bytes`, settled runs go too,
    the oldest first. Runs at work, kept ones, those that other work `needed`, and for size alone those that
    still wait for a decision (held, interrupted, failed), stay.
    """
    ordered = sorted(runs, key=lambda sized: sized.run.ended_at or now)
    total = sum(sized.size for sized in ordered)
    decided = []
    for sized in ordered:
        run = sized.run
        age = now - (run.ended_at or now)
        removed, why = False, f"younger than {days:g} days"
        if not run.state.at_rest:
            why = f"it is {run.state}"
        elif run.spared:
            why = "somebody asked to keep it"
        elif run.run_id in needed:
            why = "a workflow that has not ended needs it"
        elif age >= days * DAY:
            removed, why = True, f"at rest for {age / DAY:.0f} days"
        elif total > max_bytes and age >= YOUNG_SECONDS:
            if run.state in SETTLED:
                removed, why = True, f"all results together are more than {max_bytes} bytes"
            else:
                why = f"it is {run.state} and waits for a decision"
        if removed:
            total -= sized.size
        decided.append(Decided(run, sized.size, removed, why))
    return decided
