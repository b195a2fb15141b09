"""Pools for chaos: jobs whose executions leave traces in files, and the process that works them off."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from baton.engine.house import House
from baton.pool.events import PoolEvent
from baton.pool.foreground import run_in_foreground
from baton.pool.jobs import Job
from baton.pool.opening import open_pool
from baton.process.environment import RUN_MARKER
from baton.process.tree import ProcessId, processes_with_marker
from baton.simulate.request import Request
from baton.simulate.script import Step, say, shell
from chaos._machine import Machine, process_context
from pool.shop import a_job, a_writer, some_settings

MARKER = "<pool job "

WRITERS_LOG = "writers.log"
"""In each directory: every writer says when it begins and when it ends."""

JOURNAL = "journal"
"""In each directory: a file per writer, to which each execution appends a line."""


@dataclass(frozen=True)
class PoolPlan:
    """One pool: its name and its jobs, the same in every invocation."""

    name: str
    folder: Path
    workdirs: Sequence[Path]
    jobs: Sequence[Job]

    def grown(self, more: int) -> PoolPlan:
        """With more jobs at its end."""
        return make_plan(self.name, self.folder, self.workdirs, len(self.jobs) + more)


def make_plan(name: str, folder: Path, workdirs: Sequence[Path], count: int) -> PoolPlan:
    """`count` jobs: half of them readers, the others writers in turn in each directory, some of which may be
    repeated; every fifth writer is checked, and every seventh job waits for the one before."""
    jobs: list[Job] = []
    for number in range(count):
        job_id = f"{name}-{number:04d}"
        workdir = workdirs[(number // 2) % len(workdirs)]
        fields: dict[str, object] = {"prompt": f"{MARKER}{job_id}>"}
        if number % 7 == 6:
            fields["depends_on"] = (jobs[-1].id,)
        if number % 2 == 0:
            jobs.append(a_job(job_id, workdir, **fields))
            continue
        if number % 5 == 0:
            fields["verification_commands"] = (f"sh check.sh {job_id}",)
        jobs.append(a_writer(job_id, workdir, safe_retry=number % 4 == 1, **fields))
    return PoolPlan(name, folder, workdirs, jobs)


def make_workdir(path: Path) -> Path:
    """A plain folder to work in."""
    (path / JOURNAL).mkdir(parents=True)
    (path / WRITERS_LOG).touch()
    (path / "check.sh").write_text('sleep 0.1\ngrep -q "^$1 " writers.log\n')
    return path.resolve()


class Workers:
    """The scripted workers of all pools; counts what they were really asked to do."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._turns: set[tuple[str, str]] = set()
        self._given = 0
        """Commands given out."""
        self.executions: Counter[str] = Counter()
        """Turns that were begun, by job."""

    def know(self, plan: PoolPlan) -> None:
        """Its jobs will come."""
        self._jobs |= {job.id: job for job in plan.jobs}

    def step(self, request: Request) -> Sequence[Step]:
        """Stateless, so that a turn that is cut anywhere is done again: work, then answer."""
        found = re.search(re.escape(MARKER) + r"([\w-]+)>", request.prompt) or re.search(
            re.escape(MARKER) + r"([\w-]+)>", request.text
        )
        assert found is not None
        job = self._jobs[found[1]]
        with self._lock:
            turn = (request.thread_id, request.turn_id)
            if turn not in self._turns:
                self._turns.add(turn)
                self.executions[job.id] += 1
        positions = [at for at, item in enumerate(request.items) if item.get("role") == "user"]
        items = request.items[positions[-1] :] if positions else request.items
        if any(str(item.get("type", "")).endswith("_call_output") for item in items):
            # Whose command was killed has nothing to answer.
            done = request.outputs[-1].exit_code == 0
            return (say(answer_of(job.id) if done else ""), self.step)
        with self._lock:
            self._given += 1
            number = self._given
        return (shell(_command(job, number), yield_time_ms=20_000), self.step)


def answer_of(job_id: str) -> str:
    return f"answer of {job_id}"


def _command(job: Job, number: int) -> str:
    """What a worker does, as the command of that number; it can be found by its command line, and killed."""
    if not job.writes:
        return f": pool-work {job.id}; cat {WRITERS_LOG} > /dev/null; sleep 0.1"
    # One append each, so that no line is torn.
    return (
        f": pool-work {job.id}; echo x >> {JOURNAL}/{job.id};"
        f" echo {job.id} begin {number} >> {WRITERS_LOG}; sleep 0.15;"
        f" echo {job.id} end {number} >> {WRITERS_LOG}"
    )


@dataclass
class Traces:
    """What the files of a directory say about the writers that were there."""

    times: Counter[str] = field(default_factory=Counter)
    """Executions by job: lines of its journal."""
    overlaps: list[str] = field(default_factory=list)
    """Writers that ended after another one had begun."""
    finished: set[str] = field(default_factory=set)


def read_traces(workdir: Path) -> Traces:
    """Read them; a writer that was killed has begun and never ended, which is no overlap."""
    traces = Traces()
    for path in (workdir / JOURNAL).iterdir():
        traces.times[path.name] = len(path.read_text().splitlines())
    latest = ""
    for line in (workdir / WRITERS_LOG).read_text().splitlines():
        job_id, what, number = line.split()
        execution = f"{job_id} {number}"
        if what == "begin":
            latest = execution
        else:
            traces.finished.add(job_id)
            if latest != execution:
                traces.overlaps.append(f"{execution} ended after {latest} had begun")
    return traces


def start_pool(machine: Machine, plan: PoolPlan) -> BaseProcess:
    """`baton pool run` of a plan, in a process of its own."""
    process = process_context().Process(target=_be_pool, args=(machine.env, plan), daemon=True)
    process.start()
    return process


def began_file(plan: PoolPlan) -> Path:
    """Made anew by every invocation once it has recovered what was left."""
    return plan.folder / "began"


def _be_pool(env: Mapping[str, str], plan: PoolPlan) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(env)

    def tell(event: PoolEvent) -> None:
        if event.kind == "pool.began":
            began_file(plan).write_text(str(os.getpid()))

    settings = some_settings(
        plan.folder, concurrency=3, retries=8, backoff_seconds=0.1, breaker_failures=1000, pause_seconds=5.0
    )
    with (
        House.open(env) as house,
        open_pool(house, plan.folder / "jobs.jsonl", settings.run_dir, plan.jobs, settings) as opened,
    ):
        run_in_foreground(house, opened, plan.jobs, settings, tell)


def parts_of(pool_id: str) -> dict[str, list[ProcessId]]:
    """The living processes of a pool below its own, by what they are."""
    parts: dict[str, list[ProcessId]] = {"guard": [], "app-server": [], "command": [], "check": []}
    for process in processes_with_marker(RUN_MARKER, pool_id):
        try:
            argv = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(b"/process/" in part and b"/guard." in part for part in argv):
            parts["guard"].append(process)
        elif any(b"pool-work" in part for part in argv):
            parts["command"].append(process)
        elif any(b"check.sh" in part for part in argv):
            parts["check"].append(process)
        elif b"app-server" in argv:
            parts["app-server"].append(process)
    return parts


def until(moment: float) -> float:
    """Seconds left until a moment of the monotonic clock, never less than none."""
    return max(0.0, moment - time.monotonic())
