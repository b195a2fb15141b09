"""What a batch costs over its workers, and what its workers cost in memory.

The workers are scripted and instant: each writes one file by shell and reports. `per_task_ms` is what a task
of a batch costs over the worker, in a later run: the whole run, from the call to its answer with everything
captured, checked (`true`, in the sandbox), merged, verified together and applied, minus what the same N turns
cost in one app-server at the same concurrency, started and ended in the same round, divided by N.
`warm_ratio` sets that against one `git worktree add` of the same project, N of them in the same round. Where
it is measured matters: on ext4 without a journal the kernel makes files slowly where some were just removed,
as they are here between rounds, and the ratio is flattered. `check_alone_ms_and_cpu_ms` is one `true` in
Codex's sandbox by itself, started as a check starts it.
Of processor time a run is charged with what is used from its call until all of it has ended, but not with
what the spare runner used before: its start, and the look at worktrees ahead of need. That is told by itself
(`cpu_ahead_ms`), and a run begins only when the spare is at rest.
`memory_ratio_16` is the proportional memory (PSS) of a run with 16 workers at work, all its processes,
against 16 `codex exec` processes at work. The printed lines tell apart a first run in a new state folder.
"""

from __future__ import annotations

import contextlib
import re
import resource
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

import anyio
import psutil
from _report import parser, report
from task import Bench, bench

from baton.codex.appserver import AppServer
from baton.codex.binary import find_codex
from baton.codex.home import WorkerHome
from baton.codex.sandbox import Fence, sandboxed_argv
from baton.codex.settings import ThreadSettings
from baton.codex.thread import start_thread
from baton.codex.turn import Deadlines, TurnStatus
from baton.contract.calls import ControlAction, ControlCall
from baton.contract.claim import claim_schema
from baton.contract.session import Session
from baton.contract.task import BatchCall, Task
from baton.engine.house import House
from baton.engine.machine import Machine
from baton.engine.service import Service
from baton.engine.spare import WAIT_OPTION
from baton.process.environment import RUN_MARKER
from baton.process.tree import become_subreaper, processes_with_marker, reap
from baton.simulate import workers
from baton.simulate.home import DEFAULT_MODEL
from baton.simulate.model_server import ScriptedModel
from baton.simulate.request import Request
from baton.simulate.script import Step, stall

MARKER = "Write the file"
STALLING = "Think about it for ever"
SIZES = (50, 20_000)
BATCHES = (1, 4, 12, 48)
CONCURRENCY = 4
CROWD = 16
DEADLINE = 120.0
SETTLE = 0.7
"""Seconds over which a spare runner at rest uses nothing."""


@dataclass(frozen=True)
class _Open:
    """A profile of the floor's workers: everything readable, the worktree writable."""

    root: str
    name: str = "floor"
    network: Mapping[str, object] = field(default_factory=lambda: {"enabled": False})
    workspace_roots: tuple[str, ...] | None = None

    @property
    def config(self) -> Mapping[str, object]:
        entries = {":root": "read", self.root: "write"}
        return {"permissions": {self.name: {"filesystem": entries, "network": dict(self.network)}}}

    @property
    def writable_roots(self) -> tuple[str, ...]:
        return (self.root,)


@dataclass
class Round:
    """Seconds of one batch, of its floors and of its checks alone; `cpu_` in processor time."""

    batch: float
    turns: float
    worktrees: float
    checks: float
    cpu_batch: float
    cpu_turns: float
    cpu_checks: float
    cpu_ahead: float
    """Of the spare runner, until it was at rest before the next run."""

    def over(self, count: int) -> float:
        """Milliseconds of a task over its worker."""
        return (self.batch - self.turns) / count * 1000

    def cpu_over(self, count: int) -> float:
        """Milliseconds of processor time of a task over its worker."""
        return (self.cpu_batch - self.cpu_turns) / count * 1000

    def ratio(self, count: int) -> float:
        return self.over(count) / (self.worktrees / count * 1000)


def worker(request: Request) -> Step:
    """Writes what has not been written before into the file that the prompt names."""
    found = re.search(re.escape(MARKER) + r" (\S+)\.", request.text)
    assert found is not None
    return workers.write(found[1], f"{request.thread_id}\n")


def objective(number: int) -> str:
    return f"{MARKER} w/{number}/out.txt."


async def batch(service: Service, project: Path, count: int) -> float:
    """Seconds of a run of so many tasks."""
    tasks = [
        Task(objective=objective(number), allowed_files=[f"w/{number}/"], verification_commands=["true"])
        for number in range(count)
    ]
    began = time.perf_counter()
    answer = await service.delegate_tasks(BatchCall(tasks=tasks), Session(cwd=str(project)))
    seconds = time.perf_counter() - began
    if answer["state"] != "done" or any(
        task.outcome.integration != "applied" for task in service.house.ledger.tasks(answer["runId"])
    ):
        raise SystemExit(f"not everything was applied: {answer}")
    return seconds


def floor_worktree(made: Bench) -> Path:
    """A worktree of the project for the floor's turns: a worker by itself would be in a repository too."""
    folder = made.root / "floor-turns"
    if not folder.exists():
        made.run("git", "worktree", "add", "--quiet", "--detach", str(folder), "HEAD", cwd=made.project)
    return folder


async def turns(made: Bench, count: int) -> float:
    """Seconds of the same turns in one app-server, without Baton."""
    worktree = floor_worktree(made)
    began = time.perf_counter()
    home = Path(made.env["CODEX_HOME"])
    log = made.root / "floor.log"
    server = await AppServer.start(made.binary, home, made.env, stderr=log, cwd=worktree)
    slots = anyio.CapacityLimiter(min(CONCURRENCY, count))

    async def one(number: int) -> None:
        async with slots:
            environment = {"PATH": "/usr/bin:/bin", "HOME": str(worktree)}
            settings = ThreadSettings(worktree, DEFAULT_MODEL, "medium", _Open(str(worktree)), environment)
            thread = await start_thread(server, settings)
            outcome = await thread.run_turn(
                objective(number), output_schema=claim_schema(), deadlines=Deadlines()
            )
            if outcome.status is not TurnStatus.COMPLETED:
                raise SystemExit(f"a turn of the floor failed: {outcome.failure}")

    async with anyio.create_task_group() as running:
        for number in range(count):
            running.start_soon(one, number)
    await server.close()
    return time.perf_counter() - began


async def checks(made: Bench, home: WorkerHome, count: int, *, direct: bool) -> float:
    """Seconds of so many checks in Codex's sandbox, without Baton."""
    folder = floor_worktree(made)
    binary, slots = find_codex(made.env), anyio.CapacityLimiter(min(CONCURRENCY, count))
    state = Path(made.env["BATON_STATE"])
    fence = Fence(writable=(folder, made.root / "floor-scratch"), denied=(state, made.project))
    fence.writable[1].mkdir(exist_ok=True)
    true = shutil.which("true")
    assert true is not None
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(fence.writable[1])}
    fenced = sandboxed_argv(
        binary, home, [true], cwd=folder, env=variables, inside={}, fence=fence, direct=direct
    )
    began = time.perf_counter()

    async def one() -> None:
        async with slots:
            await anyio.run_process(fenced.argv, env=fenced.env, cwd=folder)

    async with anyio.create_task_group() as running:
        for _ in range(count):
            running.start_soon(one)
    return time.perf_counter() - began


class Processor:
    """Processor time of this process and all below it, ended ones and what they left included."""

    def __init__(self) -> None:
        become_subreaper()
        self.ahead = 0.0
        """What the spare runner has used so far, its start and what it made ready."""

    def begin(self, *, takes_spare: bool = False) -> None:
        """From here on; with `takes_spare` without what the spare runner has used so far, its start."""
        self._began = self._used() + (self.ahead if takes_spare else 0.0)

    async def end(self) -> float:
        """Seconds since `begin`, once all that was at work has ended but for a spare runner at rest."""
        idle = -1.0
        with anyio.fail_after(DEADLINE):
            while (spare := self._spare()) is None or spare != idle:
                idle = -1.0 if spare is None else spare
                await anyio.sleep(SETTLE)
        used = self._used() - self._began
        self.ahead = idle
        return used

    def _spare(self) -> float | None:
        """What a spare runner has used; None while others are still there."""
        reap(child.pid for child in psutil.Process().children())
        total = 0.0
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error):
                if WAIT_OPTION not in child.cmdline():
                    return None
                times = child.cpu_times()
                total += sum(times[:4])  # its own, and that of the git commands it ran
        return total

    def _used(self) -> float:
        whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, whose))


def worktrees(made: Bench, count: int) -> float:
    """Seconds of so many `git worktree add`, one after the other."""
    folders = [made.root / f"floor-{number}" for number in range(count)]
    began = time.perf_counter()
    for folder in folders:
        made.run("git", "worktree", "add", "--quiet", "--detach", str(folder), "HEAD", cwd=made.project)
    seconds = time.perf_counter() - began
    for folder in folders:
        made.run("git", "worktree", "remove", "--force", str(folder), cwd=made.project)
    return seconds


async def measure(files: int, batches: Sequence[int], rounds: int) -> dict[int, tuple[Round, Round]]:
    """By size of the batch: the first run of all, or of its size, and the median of later ones."""
    found: dict[int, tuple[Round, Round]] = {}
    with bench(files) as (made, model), House.open(made.env) as house:
        model.on(MARKER, worker, workers.report())
        service = Service(house, keeps_spare=True)
        machine = await Machine.open(house, None)
        processor = Processor()
        for count in batches:
            seen = []
            for _ in range(rounds + 1):
                processor.begin(takes_spare=True)
                whole = await batch(service, made.project, count)
                cpu_whole, cpu_ahead = await processor.end(), processor.ahead
                processor.begin()
                floor = await turns(made, count)
                cpu_floor = await processor.end()
                processor.begin()
                alone = await checks(made, machine.home, count, direct=machine.probe.direct)
                cpu_alone = await processor.end()
                added = worktrees(made, count)
                seen.append(Round(whole, floor, added, alone, cpu_whole, cpu_floor, cpu_alone, cpu_ahead))
            later = Round(
                **{
                    part.name: statistics.median(getattr(one, part.name) for one in seen[1:])
                    for part in fields(Round)
                }
            )
            found[count] = (seen[0], later)
        service.close()
        if model.surprises:
            raise SystemExit(f"unscripted: {model.surprises}")
    return found


async def memory() -> tuple[float, float]:
    """Megabytes of a run with a crowd of workers at work, and of as many `codex exec`."""
    with bench(50) as (made, model), House.open(made.env) as house:
        model.on(STALLING, stall())
        policy = house.codex_home / "baton" / "policy.toml"
        policy.parent.mkdir()
        policy.write_text(f"[concurrency]\nmax_parallel = {CROWD}\n")
        service = Service(house, keeps_spare=True)
        tasks = [Task(objective=f"{STALLING}.", allowed_files=[f"w/{number}/"]) for number in range(CROWD)]
        session = Session(cwd=str(made.project))
        answer = await service.delegate_tasks(BatchCall(tasks=tasks, wait_seconds=0), session)
        await anyio.to_thread.run_sync(_await_threads, model, CROWD)
        ours = _megabytes(one.pid for one in processes_with_marker(RUN_MARKER, answer["runId"]))
        await service.control_run(ControlCall(run_id=answer["runId"], action=ControlAction.CANCEL), session)
        service.close()
        with _crowd(made) as pids:
            await anyio.to_thread.run_sync(_await_threads, model, 2 * CROWD)
            return ours, _megabytes(pids)


@contextmanager
def _crowd(made: Bench) -> Iterator[list[int]]:
    command = [str(made.binary), "exec", "--json", "-s", "workspace-write", "-m", DEFAULT_MODEL]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = [
        subprocess.Popen([*command, f"{STALLING}."], cwd=made.project, env=made.env, **quiet)  # type: ignore[call-overload]
        for _ in range(CROWD)
    ]
    try:
        yield [one.pid for one in running]
    finally:
        for one in running:
            one.kill()
            one.wait()


def _await_threads(model: ScriptedModel, count: int) -> None:
    """Wait until so many threads have asked the model."""
    until = time.monotonic() + DEADLINE
    while len({request.thread_id for request in model.requests}) < count:
        if time.monotonic() > until:
            raise SystemExit("not all workers came to work")
        time.sleep(0.05)


def _megabytes(pids: Iterator[int] | list[int]) -> float:
    """Proportional memory of the processes with all below them."""
    everyone: set[int] = set()
    for pid in pids:
        everyone |= {pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))}
    total = 0
    for pid in everyone:
        with contextlib.suppress(OSError):  # a short-lived one, gone already
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            found = re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)
            total += int(found[1]) if found else 0
    return total / 1024


def _told(count: int, first: Round, later: Round) -> str:
    return (
        f"first {first.batch:.2f} s ({first.over(count):.0f} ms a task over the worker);"
        f" later {later.batch:.2f} s, turns alone {later.turns:.2f} s, worktrees {later.worktrees:.2f} s:"
        f" {later.over(count):.0f} ms a task, {later.ratio(count):.2f} worktrees; processor time"
        f" {later.cpu_over(count):.0f} ms a task over the worker, {later.cpu_ahead * 1000:.0f} ms ahead of"
        " the run; a check alone"
        f" {later.checks / count * 1000:.0f} ms, {later.cpu_checks / count * 1000:.0f} ms of processor time"
    )


def main() -> None:
    arguments = parser("What a batch costs over its workers.")
    arguments.add_argument("--rounds", type=int, default=5, help="later runs of each kind and size (5)")
    arguments.add_argument("--files", type=int, action="append", help="files of the project (50 and 20000)")
    arguments.add_argument("--tasks", type=int, action="append", help="tasks of a batch (1, 4, 12, 48)")
    options = arguments.parse_args()
    per_task: dict[str, dict[str, float]] = {}
    ratios: dict[str, dict[str, float]] = {}
    processor: dict[str, dict[str, float]] = {}
    ahead: dict[str, dict[str, float]] = {}
    alone: dict[str, dict[str, list[float]]] = {}
    for files in options.files or SIZES:
        found = anyio.run(measure, files, options.tasks or BATCHES, options.rounds)
        for count, (first, later) in found.items():
            print(f"{files} files, {count} tasks: {_told(count, first, later)}")
        per_task[str(files)] = {
            str(count): round(later.over(count), 1) for count, (_, later) in found.items()
        }
        ratios[str(files)] = {str(count): round(later.ratio(count), 3) for count, (_, later) in found.items()}
        processor[str(files)] = {
            str(count): round(later.cpu_over(count), 1) for count, (_, later) in found.items()
        }
        ahead[str(files)] = {str(count): round(later.cpu_ahead * 1000) for count, (_, later) in found.items()}
        alone[str(files)] = {
            str(count): [round(spent / count * 1000, 1) for spent in (later.checks, later.cpu_checks)]
            for count, (_, later) in found.items()
        }
    ours, theirs = anyio.run(memory)
    print(f"memory of {CROWD} workers: {ours:.0f} MB; of {CROWD} codex exec: {theirs:.0f} MB")
    report(
        {
            "per_task_ms": per_task,
            "warm_ratio": ratios,
            "cpu_ms_per_task": processor,
            "cpu_ahead_ms": ahead,
            "check_alone_ms_and_cpu_ms": alone,
            "memory_ratio_16": round(ours / theirs, 3),
        },
        as_json=options.json,
    )


if __name__ == "__main__":
    main()
