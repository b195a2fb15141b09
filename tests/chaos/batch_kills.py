"""Kills parts of Baton at random steps of real batches, and says whether anything was lost or left behind.

Usage: scripts/python.sh tests/chaos/batch_kills.py [--kills N] [--seed S] [--lanes N] [--json] [--show]

Each kill is a run of six tasks of the real Codex CLI with a scripted model, a graph beside independent tasks:
SIGKILL of a session, a runner, a guard, the app-server that all workers share, or a check. Then something of
Baton's is started again, everything is looked at, and the run is resumed to the end it would have had. The
last line is one JSON object; exit status 0 means nothing lost.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "server"))

from baton.simulate.request import Request
from baton.simulate.script import Step, shell
from baton.simulate.workers import report
from chaos._kill import Kill, Outcome
from chaos._machine import Files, read_files
from chaos.run_kills import run_kills, summary

GRAPH = {"top": (), "left": ("top",), "right": ("top",), "join": ("left", "right"), "free": (), "lone": ()}
"""The tasks and what each waits for."""


class BatchKill(Kill):
    """A kill in a run of several tasks."""

    PROJECT: ClassVar[Mapping[str, str]] = {
        "src/shared.txt": "first\n" + "middle\n" * 8 + "last\n",
        "docs/guide.md": "the guide\n",
        "notes.txt": "notes\n",
        "check.sh": "sleep 0.05\ntest -f src/shared.txt\n",
    }

    def call(self) -> dict[str, object]:
        tasks = [
            {
                "id": name,
                "objective": self._objective(name),
                "allowedFiles": [f"src/{self.number}/{name}/", *self._also(name)],
                "verificationCommands": ["sh check.sh"],
                "dependsOn": [*before],
            }
            for name, before in GRAPH.items()
        ]
        return {"tasks": tasks, "workspace": str(self.workspace), "waitSeconds": 60}

    def prepare(self) -> Files:
        for name in GRAPH:
            if name != "top":
                self.model.on(self._objective(name), *[self.work] * 40)
        return super().prepare()

    def work(self, request: Request) -> Step:
        """Stateless, so that a turn that is cut anywhere is done again: write, then report."""
        positions = [at for at, item in enumerate(request.items) if item.get("role") == "user"]
        turn = request.items[positions[-1] :] if positions else request.items
        if any(str(item.get("type", "")).endswith("_call_output") for item in turn):
            return report(summary="Written.", checks=["sh check.sh"])
        name = next(name for name in GRAPH if self._objective(name) in request.text)
        here = f"src/{self.number}"
        before = " ".join(f"{here}/{one}/f1.txt" for one in GRAPH[name]) or "/dev/null"
        lines = [
            f"mkdir -p {here}/{name}",
            # Without what its predecessors did there is nothing to go on from.
            f"cat {before} > /dev/null || exit 1",
            f"for i in $(seq {self.files}); do echo {name} > {here}/{name}/f$i.txt; done",
        ]
        if name == "free":
            lines += [f"sed -i 's/^first.*/first worker {self.number}/' src/shared.txt"]
            lines += [f"test ! -e src/old{self.number}.txt || unlink src/old{self.number}.txt"]
        return shell("; ".join(lines))

    def expected(self, old: Files) -> Files:
        return self._with(old, list(GRAPH))

    def state_of_workspace(self, old: Files) -> str:
        """`part` where some of the tasks have landed, each of them whole."""
        known = super().state_of_workspace(old)
        if known != "half-done":
            return known
        now = read_files(self.workspace)
        some = (names for count in range(1, len(GRAPH)) for names in combinations(GRAPH, count))
        return "part" if any(now == {**self._with(old, names), **self.edits} for names in some) else known

    def _with(self, old: Files, names: Sequence[str]) -> Files:
        """The workspace with what these tasks made."""
        new = dict(old)
        for name in names:
            for count in range(1, self.files + 1):
                new[f"src/{self.number}/{name}/f{count}.txt"] = (0o100644, f"{name}\n".encode())
        if "free" in names:
            mode, text = old["src/shared.txt"]
            rest = text.split(b"\n")[1:]
            new["src/shared.txt"] = (mode, b"\n".join([b"first worker %d" % self.number, *rest]))
            del new[f"src/old{self.number}.txt"]
        return new

    @property
    def files(self) -> int:
        return 20 if self.outcome.moment == "journal" else 2

    def _objective(self, name: str) -> str:
        return self.objective if name == "top" else f"{self.objective[:-1]} {name}>"

    def _also(self, name: str) -> list[str]:
        return ["src/shared.txt", f"src/old{self.number}.txt"] if name == "free" else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--show", action="store_true", help="a line for every kill, not only for bad ones")
    options = parser.parse_args()
    began = time.monotonic()

    def tell(outcome: Outcome) -> None:
        if options.show or not outcome.clean:
            print(outcome, flush=True)
            print(outcome.log if not outcome.clean else "", end="", flush=True)

    outcomes = run_kills(options.kills, options.seed, options.lanes, tell, kind=BatchKill)
    figures = summary(outcomes) | {"seconds": round(time.monotonic() - began, 1)}
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value}")
    sys.exit(0 if all(outcome.clean for outcome in outcomes) else 1)


if __name__ == "__main__":
    main()
