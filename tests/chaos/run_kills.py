"""Kills parts of Baton at random steps of real runs, and says whether anything was lost or left behind.

Usage: scripts/python.sh tests/chaos/run_kills.py [--kills N] [--seed S] [--lanes N] [--only TARGET]
                                                  [--json] [--show]

Each kill is a run of the real Codex CLI with a scripted model: SIGKILL of a session, a runner, a guard, an
app-server or a check. Then something of Baton's is started again, everything is looked at, and the run is
resumed to the end it would have had. The last line is one JSON object; exit status 0 means nothing lost.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "server"))

from chaos._kill import TARGETS, Kill, Outcome
from chaos._machine import one_machine
from real_codex import real_codex

RUNS_PER_WORKSPACE = 12
"""A workspace sees several kills, so that what one leaves behind would meet the next."""


def run_kills(
    kills: int,
    seed: str,
    lanes: int,
    tell: Callable[[Outcome], None],
    targets: Sequence[str] = TARGETS,
    kind: type[Kill] = Kill,
) -> list[Outcome]:
    """That many kills of a kind, in so many lanes at once on one machine with one state folder.

    A run that was over before its moment came is looked at all the same, but is not counted.
    """
    with one_machine(real_codex()) as (machine, model):
        numbers = itertools.count(1)
        done: list[Outcome] = []

        def wanted() -> bool:
            return sum(outcome.killed != "nothing" or not outcome.clean for outcome in done) < kills

        def lane(name: int) -> None:
            workspace, used = Path(), 0
            while wanted():
                if used % RUNS_PER_WORKSPACE == 0:
                    workspace = machine.workspace(machine.root / "work" / f"lane{name}-{used}", kind.PROJECT)
                used += 1
                outcome = _one(kind(machine, model, workspace, next(numbers), seed, targets))
                tell(outcome)
                done.append(outcome)
                if not outcome.clean:
                    used += -used % RUNS_PER_WORKSPACE

        with ThreadPoolExecutor(lanes) as pool:
            for finished in [pool.submit(lane, name) for name in range(lanes)]:
                finished.result()
        return [outcome for outcome in done if outcome.killed != "nothing" or not outcome.clean][:kills]


def summary(outcomes: list[Outcome]) -> dict[str, object]:
    """The figures of a run of this script."""
    interrupted = [outcome for outcome in outcomes if outcome.interrupted]
    return {
        "kills": len(outcomes),
        "lost": sum(bool(outcome.lost) for outcome in outcomes),
        "orphans": sum(bool(outcome.orphans) for outcome in outcomes),
        "interrupted": len(interrupted),
        "resumable": sum(not outcome.stuck for outcome in interrupted),
        "sameEnd": sum(not outcome.stuck for outcome in outcomes),
        "killed": dict(Counter(outcome.killed for outcome in outcomes)),
        "moments": dict(Counter(outcome.moment for outcome in outcomes)),
    }


def _one(kill: Kill) -> Outcome:
    try:
        return kill.run()
    except Exception as error:
        kill.outcome.stuck.append(f"{type(error).__name__}: {error}")
        return kill.outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--only", choices=TARGETS, action="append", help="kill nothing else")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--show", action="store_true", help="a line for every kill, not only for bad ones")
    options = parser.parse_args()
    began = time.monotonic()

    told: list[Outcome] = []

    def tell(outcome: Outcome) -> None:
        told.append(outcome)
        if len(told) % 50 == 0:
            print(
                f"{len(told)} runs, {sum(not one.clean for one in told)} of them not as they must be",
                flush=True,
            )
        if options.show or not outcome.clean:
            print(outcome, flush=True)
            if not outcome.clean:
                print(outcome.log, flush=True)

    outcomes = run_kills(options.kills, options.seed, options.lanes, tell, options.only or TARGETS)
    figures = summary(outcomes) | {"seconds": round(time.monotonic() - began, 1)}
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value}")
    sys.exit(0 if all(outcome.clean for outcome in outcomes) else 1)


if __name__ == "__main__":
    main()
