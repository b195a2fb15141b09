"""What one delegated task costs, against the floor of one `git worktree add` plus one Codex turn.

The worker is scripted and instant: it writes one file by shell and reports. Both sides run the real Codex
with that same script and take turns in the same run; medians are compared. Baton's side is a whole delegated
task, from the call to its answer, with one check (`true`), merged, verified and applied. `partsMs` says where
its time goes, from the run's own record. The first task of a new state folder is told apart as cold.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from _report import median, parser, report

from baton.codex.binary import find_codex
from baton.contract.session import Session
from baton.contract.task import TaskCall
from baton.engine.house import House
from baton.engine.service import Service
from baton.simulate import workers
from baton.simulate.home import DEFAULT_MODEL, write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.request import Request
from baton.simulate.script import Step

MARKER = "Note the round"
SIZES = (50, 20_000)
FILES_IN_A_FOLDER = 100

PARTS = (
    ("admission", "run.admitted"),
    ("runner start", "run.running"),
    ("snapshot", "run.snapshot"),
    ("isolate and start", "attempt.working"),
    ("turn", "worker.message"),
    ("capture", "attempt.captured"),
    ("verify", "attempt.verified"),
    ("judge", "attempt.judged"),
    ("merge", "integration.merged"),
    ("apply", "integration.applied"),
    ("rest", "run.done"),
)
"""Each part of a task's time, and the last event of the run that ends it."""


@dataclass
class Bench:
    """One project and the two ways to have a line written in it."""

    root: Path
    binary: Path
    env: Mapping[str, str]
    rounds: int = 0
    parts: dict[str, list[float]] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.root / "project"

    async def delegated(self, service: Service) -> float:
        """Seconds of one task through Baton."""
        call = TaskCall(objective=f"{MARKER}.", allowed_files=["src/"], verification_commands=["true"])
        at, began = time.time(), time.perf_counter()
        result = await service.delegate_task(call, Session(cwd=str(self.project)))
        seconds = time.perf_counter() - began
        if result.get("integration") != "applied":
            raise SystemExit(f"the task was not applied: {result}")
        self._take_apart(service.house, str(result["runId"]), at, at + seconds)
        return seconds

    def floor(self) -> float:
        """Seconds of one worktree and one Codex turn in it."""
        self.rounds += 1
        worktree = self.root / f"floor-{self.rounds}"
        began = time.perf_counter()
        self.run("git", "worktree", "add", "--quiet", "--detach", str(worktree), "HEAD", cwd=self.project)
        model = ("-m", DEFAULT_MODEL)
        self.run(
            str(self.binary), "exec", "--json", "-s", "workspace-write", *model, f"{MARKER}.", cwd=worktree
        )
        seconds = time.perf_counter() - began
        if not (worktree / "src" / "round.txt").exists():
            raise SystemExit("the turn of the floor wrote nothing")
        self.run("git", "worktree", "remove", "--force", str(worktree), cwd=self.project)
        return seconds

    def _take_apart(self, house: House, run_id: str, began: float, ended: float) -> None:
        seen = {event.kind: event.created_at for event in house.ledger.events(run_id, limit=1000)}
        before = began
        for part, kind in PARTS:
            self.parts.setdefault(part, []).append(seen[kind] - before)
            before = seen[kind]
        self.parts.setdefault("answer", []).append(ended - before)

    def run(self, *argv: str, cwd: Path) -> None:
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        done = subprocess.run(argv, cwd=cwd, env=self.env, text=True, check=False, **quiet)
        if done.returncode != 0:
            raise SystemExit(f"{argv[0]} {argv[1]} failed: {done.stderr}")


@contextmanager
def bench(files: int) -> Iterator[tuple[Bench, ScriptedModel]]:
    """A project of that many files, and a Codex home that leads to the scripted model."""
    # Not in the system's temporary folder, where Codex keeps no home.
    parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "baton"
    parent.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="bench-", dir=parent))
    try:
        with ScriptedModel() as model:
            foreign = ("GIT_", "CODEX_HOME", "BATON_STATE")
            env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
            home = write_simulated_home(root / "home" / ".codex", model.port)
            env |= {"HOME": str(home.parent), "CODEX_HOME": str(home), "BATON_STATE": str(root / "state")}
            made = Bench(root, find_codex(env, None, cache=root).path, env)
            make_project(made, files)
            model.on(MARKER, *worker())
            yield made, model
    finally:
        shutil.rmtree(root, ignore_errors=True)


def worker() -> tuple[Step, ...]:
    """Writes what has not been written before, so that every round changes the project."""

    def write(request: Request) -> Step:
        return workers.write("src/round.txt", f"{request.thread_id}\n")

    return write, workers.report()


def make_project(made: Bench, files: int) -> None:
    """A repository of `files` small files, all committed."""
    for number in range(files):
        folder = made.project / ("src" if number == 0 else f"lib/{number // FILES_IN_A_FOLDER:04}")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:05}.txt").write_text(f"line {number}\n" * 20)
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Files"]):
        made.run("git", *who, *command, cwd=made.project)


async def measure(files: int, pairs: int) -> dict[str, object]:
    """Medians for a project of that many files."""
    with bench(files) as (made, model), House.open(made.env) as house:
        service = Service(house)
        cold = await made.delegated(service)
        made.floor()  # A first turn in a new Codex home is no floor either.
        made.parts.clear()
        taken = [(await made.delegated(service), made.floor()) for _ in range(pairs)]
        service.ownership.close()
        if model.surprises:
            raise SystemExit(f"unscripted: {model.surprises}")
    tasks, floors = [pair[0] for pair in taken], [pair[1] for pair in taken]
    return {
        "coldSeconds": round(cold, 3),
        "taskSeconds": median(tasks, 3),
        "floorSeconds": median(floors, 3),
        "ratio": median([task / floor for task, floor in taken], 2),
        "overheadSeconds": median([task - floor for task, floor in taken], 3),
        "partsMs": {name: round(statistics.median(times) * 1000) for name, times in made.parts.items()},
    }


def main() -> None:
    arguments = parser("What one delegated task costs.")
    arguments.add_argument("--pairs", type=int, default=9, help="tasks of each kind and size (9)")
    arguments.add_argument("--files", type=int, action="append", help="files of the project (50 and 20000)")
    options = arguments.parse_args()
    results: dict[str, object] = {"pairs": options.pairs}
    for files in options.files or SIZES:
        results[f"files{files}"] = anyio.run(measure, files, options.pairs)
    report(results, as_json=options.json)


if __name__ == "__main__":
    main()
