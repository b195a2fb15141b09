"""Finds which of several results can land together when all of them at once fail a check. Bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

ROUNDS = 8
"""How often the checks of a selection are run, at most, to tell what fits."""


@dataclass
class Fit:
    """Names that pass together, and why each of the others is left out."""

    fitting: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    rounds: int = 0


async def find_fit(
    names: Sequence[str],
    failing: str,
    try_out: Callable[[list[str]], Awaitable[str | None]],
    rounds: int = ROUNDS,
) -> Fit:
    """Which of `names`, that fail `failing` together, pass.

    `try_out` checks a selection and says what fails, None when all passes. All are tried once more, so that a
    check that was killed or fails now and then decides nothing. Then the first result with which the ones
    before it fail is found by halving and left out, and the rest is tried again. What is told when the rounds
    are used up is the largest selection that passed; the others are left out.
    """
    fit = Fit()

    async def fails(selection: list[str]) -> str | None:
        fit.rounds += 1
        return await try_out(selection)

    wanted, why, passing = list(names), failing, 0
    if len(wanted) > 1 and rounds > 0:
        found = await fails(wanted)
        if found is None:
            fit.fitting = wanted
            return fit
        why = found
    while wanted and fit.rounds < rounds:
        # `passing` of them pass together, `broken` of them do not.
        broken = len(wanted)
        while broken - passing > 1 and fit.rounds < rounds:
            middle = (passing + broken) // 2
            found = await fails(wanted[:middle])
            if found is None:
                passing = middle
            else:
                broken, why = middle, found
        if broken - passing > 1:
            break
        fit.left_out[wanted.pop(passing)] = _reason(why, alone=passing == 0)
        if len(wanted) == passing:
            fit.fitting = wanted
            return fit
        if fit.rounds < rounds:
            found = await fails(wanted)
            if found is None:
                fit.fitting = wanted
                return fit
            why = found
    fit.fitting = wanted[:passing]
    for name in wanted[passing:]:
        fit.left_out[name] = (
            f"the merged tree fails {why}, and {rounds} rounds of checks did not tell with which results;"
            " integrate it by name"
        )
    return fit


def _reason(command: str, *, alone: bool) -> str:
    if alone:
        return f"passes alone, but not on the workspace as it is now: {command}"
    return f"does not go together with the results that land: with it {command} fails on the merged tree"
