"""Has real workers try to get out in every way we know, and says what became of each attempt.

Usage: scripts/python.sh tests/chaos/escape.py [--json] [--only NAME] [--show]

The Codex CLI, its sandbox, git and everything of Baton's are real; the model is scripted. The last line is
one JSON object. Exit status 0 means that nothing escaped, nothing went unnoticed and every attempt was made.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "server"))

from chaos._attempt import Finding, Mission, Outcome, carry_out, warm_up
from chaos._lab import Lab, open_lab
from chaos.escapes import (
    background,
    checks,
    config,
    git,
    hidden,
    kernel,
    links,
    neighbours,
    network,
    reading,
    scope,
    tools,
    writes,
)
from real_codex import real_codex

ROOMS: tuple[Callable[[Lab], list[Mission]], ...] = (
    writes.missions,
    links.missions,
    kernel.missions,
    scope.missions,
    hidden.missions,
    reading.missions,
    network.missions,
    background.missions,
    tools.missions,
    checks.missions,
    neighbours.missions,
    config.missions,
    git.missions,
)
"""In this order: the later ones plant what would disturb the earlier ones."""


SHOWN = 1500
"""Characters of an attempt's output that `--show` prints."""


def default_parent() -> Path:
    """Where a lab may be made: outside the system's temporary folder, where Codex keeps no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "baton" / "tests"


async def run(
    lab: Lab, wanted: Callable[[str], bool], tell: Callable[[Finding], None] = lambda _: None
) -> list[Finding]:
    """Carry out the missions of which an attempt is wanted, one worker after the other."""
    found: list[Finding] = []
    with lab.service() as service:
        await warm_up(lab, service)
    for room in ROOMS:
        for mission in room(lab):
            if not any(wanted(name) for name in (mission.name, *(each.name for each in mission.attempts))):
                continue
            if mission.before is not None:
                mission.before(lab)
            with lab.service() as service:
                findings = await carry_out(lab, service, mission)
            for finding in findings:
                if wanted(finding.mission) or wanted(finding.attempt.name):
                    found.append(finding)
                    tell(finding)
    return found


def summary(found: Iterable[Finding]) -> dict[str, int]:
    """How many attempts came to what. Controls and stated limits are no attempts."""
    counted = [each for each in found if not each.attempt.name.startswith("control")]

    def count(outcome: Outcome) -> int:
        return sum(each.outcome is outcome for each in counted)

    return {
        "attempts": len(counted) - count(Outcome.KNOWN),
        "escaped": count(Outcome.ESCAPED),
        "undetected": count(Outcome.UNDETECTED),
        "prevented": count(Outcome.PREVENTED),
        "detected": count(Outcome.DETECTED),
        "known": count(Outcome.KNOWN),
        "void": sum(each.outcome is Outcome.VOID for each in found),
    }


def line(finding: Finding) -> str:
    """One row of the table."""
    why = f"  ({finding.why})" if finding.why else ""
    return f"{finding.outcome.value:<10} {finding.attempt.name:<36} {finding.attempt.tries}{why}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the JSON object, without the table")
    parser.add_argument(
        "--only", metavar="NAME", help="only missions or attempts whose name matches (a glob)"
    )
    parser.add_argument("--show", action="store_true", help="also what the worker's commands printed")
    options = parser.parse_args()
    began = time.monotonic()

    def wanted(name: str) -> bool:
        return options.only is None or fnmatchcase(name, options.only)

    def tell(finding: Finding) -> None:
        good = finding.outcome not in (Outcome.ESCAPED, Outcome.UNDETECTED, Outcome.VOID)
        print(line(finding), file=sys.stderr if options.json and good else sys.stdout, flush=True)
        if options.show:
            print(f"    {finding.output[:SHOWN]}".replace("\n", "\n    "), file=sys.stderr)

    binary = real_codex()
    with open_lab(binary, default_parent()) as lab:
        found = anyio.run(run, lab, wanted, tell)
    counts = summary(found)
    took = f"{binary}: {len(found)} findings in {time.monotonic() - began:.0f} s"
    print(took, file=sys.stderr)
    print(json.dumps(counts))
    bad = counts["escaped"] + counts["undetected"] + counts["void"]
    return 1 if bad or not found else 0


if __name__ == "__main__":
    sys.exit(main())
