"""Two sessions with two Codex homes bring results into one repository at the same moment.

Usage: scripts/python.sh tests/chaos/sessions.py [--rounds N] [--seed S] [--json] [--show]

Each session is a process of its own. In half of the rounds both share a state folder, in the other half each
has one. In every round both work from the same state of the workspace and integrate at once; what each added
must be in the workspace afterwards. The last line is one JSON object; exit status 0 means no update was lost.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "server"))

import anyio

from baton.contract.states import Integration
from baton.engine.house import House
from baton.workspace.git import Git
from baton.workspace.journal import Journal, Mark
from baton.workspace.journal_place import journals
from baton.workspace.locate import locate
from chaos._machine import Machine, process_context, throw_away_folder
from chaos._scripted import land, with_result

SESSIONS = ("left", "right")

SHARED = "src/shared.txt"
"""Each session changes its own end of it: two updates of one file."""

FILES = {SHARED: "left 0\n" + "middle\n" * 10 + "right 0\n", "src/other.txt": "other\n"}

DEADLINE = 120.0


@dataclass
class Round:
    """What both sessions did at once, and what is missing afterwards."""

    number: int
    state: str
    outcomes: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.lost


def be_session(name: str, env: Mapping[str, str], workspace: Path, orders: Connection) -> None:
    """A session: for every number it is sent it prepares a result, says so, waits, and integrates."""
    with House.open(env) as house:
        while (number := orders.recv()) is not None:

            def work(root: Path, number: int = number) -> None:
                text = (root / SHARED).read_text().splitlines()
                text[0 if name == "left" else -1] = f"{name} {number}"
                (root / SHARED).write_text("\n".join(text) + "\n")
                (root / f"src/{name}-{number}.txt").write_text(f"{name} {number}\n")

            ctx = with_result(house, workspace, work)
            orders.send("ready")
            orders.recv()
            outcomes = [anyio.run(land, ctx)]
            while outcomes[-1] is Integration.HELD and len(outcomes) < 5:
                # The other one moved the workspace three times under it: what `control_run integrate` is for.
                outcomes.append(anyio.run(land, ctx))
            orders.send([outcome.value for outcome in outcomes])


def play(rounds: int, seed: str, root: Path, show: bool) -> list[Round]:
    """That many rounds, half of them with one state folder for both sessions."""
    chance = random.Random(seed)
    found: list[Round] = []
    for kind, count in (("shared", rounds // 2), ("own", rounds - rounds // 2)):
        base = root / kind
        machines = [
            Machine(
                base / name, 9, Path("codex-is-not-used"), state=base / "state" if kind == "shared" else None
            )
            for name in SESSIONS
        ]
        workspace = machines[0].workspace(base / "work", FILES)
        doors = [process_context().Pipe() for _ in SESSIONS]
        processes = [
            process_context().Process(
                target=be_session, args=(name, machine.env, workspace, theirs), daemon=True
            )
            for name, machine, (_, theirs) in zip(SESSIONS, machines, doors, strict=True)
        ]
        for process in processes:
            process.start()
        ours = [door for door, _ in doors]
        for number in range(1, count + 1):
            done = Round(number, kind)
            _answers(ours, number)
            for door in chance.sample(ours, 2):
                door.send("go")
                time.sleep(chance.choice((0, 0, chance.uniform(0, 0.05))))
            for name, door in zip(SESSIONS, ours, strict=True):
                done.outcomes[name] = ">".join(_answer(door))
            done.lost = missing(workspace, number)
            found.append(done)
            if show or not done.clean:
                print(done, flush=True)
        for door, process in zip(ours, processes, strict=True):
            door.send(None)
            process.join(DEADLINE)
    return found


def missing(workspace: Path, number: int) -> list[str]:
    """Updates of this round and of earlier ones that are not there, and journals left open."""
    lines = (workspace / SHARED).read_text().splitlines()
    lost = [
        f"{name} {number} in {SHARED}"
        for name, line in (("left", lines[0]), ("right", lines[-1]))
        if line != f"{name} {number}"
    ]
    for name in SESSIONS:
        for past in range(1, number + 1):
            file = workspace / f"src/{name}-{past}.txt"
            if not file.is_file() or file.read_text() != f"{name} {past}\n":
                lost.append(file.name)
    site = locate(workspace, Git.find())
    for folder in journals(site.root, site.common_dir):
        if Journal(folder, lambda _: None).read()[1] not in (Mark.CLOSED, Mark.UNDONE):
            lost.append(f"journal {folder.name} is open")
    return lost


def _answers(doors: list[Connection], number: int) -> None:
    for door in doors:
        door.send(number)
    for door in doors:
        _answer(door)


def _answer(door: Connection) -> list[str]:
    if not door.poll(DEADLINE):
        raise TimeoutError("a session does not answer")
    answer: list[str] = door.recv()
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--show", action="store_true", help="a line for every round, not only for bad ones")
    options = parser.parse_args()
    began = time.monotonic()
    with throw_away_folder("s-") as root:
        rounds = play(options.rounds, options.seed, root, options.show)
    figures = {
        "rounds": len(rounds),
        "lost": sum(bool(done.lost) for done in rounds),
        "outcomes": dict(Counter(outcome for done in rounds for outcome in done.outcomes.values())),
        "states": dict(Counter(done.state for done in rounds)),
        "seconds": round(time.monotonic() - began, 1),
    }
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value}")
    sys.exit(0 if all(done.clean for done in rounds) else 1)


if __name__ == "__main__":
    main()
