"""What a pool costs beside its jobs: CPU and memory per job, and a look at its status, at several sizes.

Usage: scripts/python.sh tests/bench/pool.py [--sizes N …] [--json]

The jobs are done by a simulated back end that answers at once, so everything measured is the pool's own:
reading the job file, the queue, the throttle, the evidence, the ledger on disk, the artifacts. Each size runs
in a process of its own with a state folder of its own; CPU is that of the whole process, all threads, from
before the job file is read until the pool is closed; the settings are read before. Memory is the peak of the
process, and what of that came after everything was loaded. Ten jobs take a few hundredths of a second, so a
small size is measured several times, each time in a new process, and the median is told; `measured` says how
often. The last line is one JSON object.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# Not this folder, whose files may have the names of modules of the standard library.
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "server"))

import anyio

from baton.contract.catalogue import ModelEntry
from baton.contract.evidence import Route, Usage
from baton.engine.house import House
from baton.engine.stop import Stop
from baton.ledger.pool_records import JobState
from baton.pool.backend import Assignment, AttemptOutcome
from baton.pool.opening import open_pool
from baton.pool.read import read_jobs
from baton.pool.run import run_pool
from baton.pool.settle import Flags, settle
from baton.pool.status import pool_status
from baton.workspace.git import Git
from bench._report import parser, report

SIZES = (10, 100, 1000, 10_000)
CATALOGUE = (ModelEntry(slug="gpt-5.6-luna", efforts=("low", "medium"), default_effort="medium"),)
LOOKS = 7
FIRST = 4
ENOUGH = 100
"""Jobs that are enough for one measurement."""
MOST_TIMES = 9


class SimulatedInstantBackend:
    """Answers every job at once with a message of its own; no Codex, no model, no process."""

    name = "simulated-instant"
    jitter_seconds = 0.0
    warms_up = True

    async def start(self) -> None:
        """Nothing is needed."""

    async def run(self, assignment: Assignment) -> AttemptOutcome:
        assignment.on_thread(f"simulated-{assignment.job.id}")
        assignment.on_answer()
        route = assignment.job.route
        return AttemptOutcome(
            completed=True,
            message=f"simulated answer of {assignment.job.id}",
            thread_id=f"simulated-{assignment.job.id}",
            usage=Usage(input_tokens=1000, output_tokens=100, total_tokens=1100),
            route=Route(asked_model=route.model, asked_effort=route.effort),
        )

    async def close(self) -> None:
        """Nothing is left."""


def measure(size: int, root: Path) -> dict[str, float]:
    """Work off a file of `size` jobs in this process; what that took.

    A pool of a few jobs goes before, in a state folder of its own: what a process loads once is no cost of
    a job.
    """
    _work_off(FIRST, root / "first")
    return _work_off(size, root / "measured")


def _work_off(size: int, root: Path) -> dict[str, float]:
    project = root / "project"
    project.mkdir(parents=True)
    file = project / "jobs.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for number in range(size):
            row = {"id": f"job-{number:05d}", "prompt": f"Say what stands in file {number}.", "effort": "low"}
            lines.write(json.dumps({**row, "model": "gpt-5.6-luna"}) + "\n")
    env = {
        "HOME": str(root),
        "CODEX_HOME": str(root / ".codex"),
        "BATON_STATE": str(root / "state"),
        "PATH": os.environ["PATH"],
    }
    git = Git.find(env)
    with House.open(env) as house:
        settled = settle(file, Flags(), root / ".codex", project, root)
        settings = settled.settings
        before = _now()
        jobs = read_jobs(file, settings, settled.policy, CATALOGUE, git)
        was_read = _now()
        with open_pool(house, file, settings.run_dir, jobs, settings) as opened:
            end = anyio.run(_work, house, opened, jobs, settings)
        after = _now()
        if end.counts != {JobState.SUCCEEDED: size}:
            raise SystemExit(f"not every job succeeded: {end}")
        looks = []
        for _ in range(LOOKS):
            began = time.perf_counter()
            pool_status(house, end.pool_id)
            looks.append((time.perf_counter() - began) * 1000)
    return {
        "cpu_ms_per_job": (after["cpu"] - before["cpu"]) * 1000 / size,
        "of_that_reading_ms": (was_read["cpu"] - before["cpu"]) * 1000 / size,
        "wall_ms_per_job": (after["wall"] - before["wall"]) * 1000 / size,
        "memory_mb": after["memory"],
        "memory_grown_mb": after["memory"] - before["memory"],
        "status_ms": statistics.median(looks),
    }


async def _work(house: House, opened: Any, jobs: Any, settings: Any) -> Any:
    return await run_pool(
        house, opened, jobs, settings, lambda event: None, Stop(), backend=SimulatedInstantBackend()
    )


def _now() -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu": used.ru_utime + used.ru_stime,
        "wall": time.perf_counter(),
        "memory": used.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024),
    }


def _in_a_process(size: int) -> dict[str, float]:
    parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "baton" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(dir=parent, prefix="bp-"))
    try:
        command = [sys.executable, __file__, "--one", str(size), str(root / "home")]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        measured: dict[str, float] = json.loads(done.stdout)
        return measured
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _times(size: int) -> int:
    return max(1, min(MOST_TIMES, ENOUGH // size))


def _measured(size: int) -> dict[str, float]:
    """The median of each measure."""
    found = [_in_a_process(size) for _ in range(_times(size))]
    return {name: statistics.median(one[name] for one in found) for name in found[0]}


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(int(sys.argv[2]), Path(sys.argv[3]))))
        return
    arguments = parser("What a pool costs beside its jobs.")
    arguments.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    options = arguments.parse_args()
    measured = {size: _measured(size) for size in options.sizes}
    names = list(next(iter(measured.values())))
    results: dict[str, object] = {
        name: {str(size): round(one[name], 3) for size, one in measured.items()} for name in names
    }
    results["measured"] = {str(size): _times(size) for size in measured}
    report({**results, "backend": SimulatedInstantBackend.name}, as_json=options.json)


if __name__ == "__main__":
    main()
