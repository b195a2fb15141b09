"""Kills parts of pools at random moments, and says whether anything was lost, done twice or left behind.

Usage: scripts/python.sh tests/chaos/pool_kills.py [--kills N] [--seed S] [--jobs N] [--pools N] [--json]

Several pools of one machine work in the same directories at the same time: real Codex, a scripted model,
half of the jobs writers. Each kill is a SIGKILL of a pool's process, its app-server, a guard, a worker's
command or a check; a pool whose process is gone is started again as a person would. When all kills are done
the pools run to their end, and the writers that were cut are asked for by name, as a person would too. A pool
that is over before its kills gets more rows in its file.

What is counted is what the workers really wrote: every execution of a writer appends a line to a file of its
own, and says in the directory's log when it begins and ends. The last line is one JSON object; exit status 0
means that every figure but the kills is 0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "server"))

from baton.engine.house import House
from baton.ledger.pool_records import JobState, PoolJobRecord, PoolRecord
from baton.pool.control import ask_again
from baton.process.environment import RUN_MARKER
from baton.process.tree import ProcessId, is_alive, processes_with_marker, start_time
from chaos._machine import Machine, one_machine
from chaos._pool_machine import (
    MARKER,
    PoolPlan,
    Traces,
    Workers,
    answer_of,
    began_file,
    make_plan,
    make_workdir,
    parts_of,
    read_traces,
    start_pool,
    until,
)
from real_codex import real_codex

TARGETS = ("pool", "pool", "app-server", "guard", "command", "check")
DEADLINE = 120.0
JOBS_PER_KILL = 2.5
WORKDIRS = 2
MORE_ROWS = 20


@dataclass
class Tally:
    """What was killed, and everything that is not as it must be."""

    killed: Counter[str] = field(default_factory=Counter)
    double_writers: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.double_writers or self.lost or self.repeated or self.orphans)


class Lane:
    """One pool from its first start to its end, with its share of the kills."""

    def __init__(
        self,
        machine: Machine,
        house: House,
        workers: Workers,
        plan: PoolPlan,
        seed: str,
        kills: int,
        tally: Tally,
    ) -> None:
        self.workers = workers
        self.machine, self.house, self.plan, self.kills, self.tally = machine, house, plan, kills, tally
        self.random = random.Random(f"{seed}-{plan.name}")
        self.named: Counter[str] = Counter()
        """How often a job was asked for by name."""
        self._process: BaseProcess | None = None
        self._left: list[ProcessId] = []

    def run(self) -> None:
        done = 0
        while done < self.kills:
            if self._is_over():
                self._grow()
            self._be_running()
            if self._strike():
                done += 1
        for _ in range(20):
            self._be_running()
            self._join()
            if self._is_over():
                return
            # What is left are writers that were cut, and what waits for them.
            wanted = [job.job_id for job in self.jobs() if job.state is not JobState.SUCCEEDED]
            cut = [job.id for job in self.plan.jobs if job.id in wanted and job.writes and not job.safe_retry]
            for job_id in ask_again(self.house, self.pool().pool_id, cut or wanted):
                self.named[job_id] += 1
        self.tally.lost.append(f"pool {self.plan.name} does not come to its end")

    def _grow(self) -> None:
        """More rows in the file."""
        assert self._process is not None
        self._process.join(DEADLINE)
        self.plan = self.plan.grown(MORE_ROWS)
        self.workers.know(self.plan)

    # -- the pool ----------------------------------------------------------------------------------

    def pool(self) -> PoolRecord:
        return next(
            pool for pool in self.house.ledger.pools(-1) if pool.run_dir == str(self.plan.folder / "run")
        )

    def jobs(self) -> list[PoolJobRecord]:
        """As the ledger has them."""
        return self.house.ledger.pool_jobs(self.pool().pool_id)

    def _is_over(self) -> bool:
        if self._process is None:
            return False
        return all(job.state is JobState.SUCCEEDED for job in self.jobs())

    def _be_running(self) -> None:
        """Start the pool unless it runs, and look whether what it left before has ended."""
        if self._process is not None and self._process.is_alive():
            return
        if self._process is not None:
            self._process.join(DEADLINE)
        began_file(self.plan).unlink(missing_ok=True)
        self._process = start_pool(self.machine, self.plan)
        end = time.monotonic() + DEADLINE
        while not began_file(self.plan).exists() and self._process.is_alive():
            if time.monotonic() > end:
                raise AssertionError(f"pool {self.plan.name} does not start")
            time.sleep(0.01)
        if began_file(self.plan).exists():
            alive = [process.pid for process in self._left if is_alive(process)]
            if alive:
                self.tally.orphans.append(f"{self.plan.name}: {alive} outlived the next start")
            self._left = []

    def _join(self) -> None:
        assert self._process is not None
        self._process.join(DEADLINE)
        if self._process.is_alive():
            self._process.kill()
            raise AssertionError(f"pool {self.plan.name} does not end")

    # -- killing -----------------------------------------------------------------------------------

    def _strike(self) -> bool:
        """One kill; False when there was nothing to kill any more."""
        assert self._process is not None and self._process.pid is not None
        time.sleep(self.random.random() * 0.9)
        target = self.random.choice(TARGETS)
        pool_id = self.pool().pool_id
        end = time.monotonic() + 3.0
        victim: ProcessId | None = None
        while target != "pool" and until(end) and self._process.is_alive():
            found = parts_of(pool_id)[target]
            if found:
                victim = self.random.choice(found)
                break
            time.sleep(0.02)
        if victim is None:
            target = "pool"
            started = start_time(self._process.pid)
            if not self._process.is_alive() or started is None:
                return False
            victim = ProcessId(self._process.pid, started)
        if target == "pool":
            self._left = list(processes_with_marker(RUN_MARKER, pool_id))
        if not is_alive(victim):
            return False
        try:
            os.kill(victim.pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        if target == "pool":
            self._process.join(DEADLINE)
        self.tally.killed[target] += 1
        return True


def run_kills(kills: int, seed: str, count: int, pools: int) -> tuple[Tally, dict[str, object]]:
    """That many kills over so many jobs in so many pools; what came of it."""
    tally = Tally()
    with one_machine(real_codex()) as (machine, model):
        workdirs = [make_workdir(machine.root / "work" / f"dir{number}") for number in range(WORKDIRS)]
        plans = []
        for number in range(pools):
            folder = machine.root / "pools" / f"p{number}"
            folder.mkdir(parents=True)
            (folder / "jobs.jsonl").touch()
            plans.append(make_plan(f"p{number}", folder, workdirs, count // pools))
        workers = Workers()
        for plan in plans:
            workers.know(plan)
        model.on(MARKER, workers.step)
        shares = [kills // pools + (number < kills % pools) for number in range(pools)]
        with House.open(machine.env) as house:
            lanes = [
                Lane(machine, house, workers, plan, seed, share, tally)
                for plan, share in zip(plans, shares, strict=True)
            ]
            with ThreadPoolExecutor(pools) as threads:
                for ended in [threads.submit(lane.run) for lane in lanes]:
                    ended.result()
            traces = [read_traces(workdir) for workdir in workdirs]
            for lane in lanes:
                _judge(lane, workers, traces, tally)
        for trace in traces:
            tally.double_writers += trace.overlaps
        tally.lost += model.surprises
    return tally, {"jobs": sum(len(lane.plan.jobs) for lane in lanes), "killed": dict(tally.killed)}


def _judge(lane: Lane, workers: Workers, traces: list[Traces], tally: Tally) -> None:
    """Hold what the ledger says against what the workers really did."""
    house, pool_id = lane.house, lane.pool().pool_id
    times: Counter[str] = sum((trace.times for trace in traces), Counter())
    finished = set().union(*(trace.finished for trace in traces))
    records = {job.job_id: job for job in lane.jobs()}
    for job in lane.plan.jobs:
        record = records.get(job.id)
        if record is None or record.state is not JobState.SUCCEEDED or record.output is None:
            tally.lost.append(f"{job.id}: {record and record.state}")
            continue
        if house.artifacts.read(record.output).decode() != answer_of(job.id):
            tally.lost.append(f"{job.id}: its output is not its answer")
        if job.writes and job.verification_commands and job.id not in finished:
            tally.lost.append(f"{job.id}: it is verified and has not finished")
        attempts = house.ledger.pool_attempts(pool_id, job.id)
        succeeded = [attempt.attempt for attempt in attempts if attempt.state == "succeeded"]
        if len(succeeded) != 1 or succeeded[0] != len(attempts):
            tally.repeated.append(f"{job.id}: succeeded in attempts {succeeded} of {len(attempts)}")
        if workers.executions[job.id] > len(attempts):
            tally.repeated.append(
                f"{job.id}: {workers.executions[job.id]} executions, {len(attempts)} recorded attempts"
            )
        if not job.writes:
            continue
        if times[job.id] > len(attempts):
            tally.repeated.append(f"{job.id}: wrote {times[job.id]} times in {len(attempts)} attempts")
        allowed = 1 + lane.named[job.id]
        if not job.safe_retry and times[job.id] > allowed:
            tally.double_writers.append(f"{job.id}: wrote {times[job.id]} times, {allowed} were allowed")
        if not times[job.id]:
            tally.lost.append(f"{job.id}: it has succeeded and never wrote")
    left = processes_with_marker(RUN_MARKER, pool_id)
    if left:
        tally.orphans.append(f"{lane.plan.name}: {[process.pid for process in left]} are left at the end")


def summary(tally: Tally) -> dict[str, object]:
    """The figures of a run of this script."""
    return {
        "kills": sum(tally.killed.values()),
        "double_writers": len(tally.double_writers),
        "lost": len(tally.lost),
        "repeated": len(tally.repeated),
        "orphans": len(tally.orphans),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, help=f"default: {JOBS_PER_KILL} for each kill")
    parser.add_argument("--pools", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    options = parser.parse_args()
    began = time.monotonic()
    count = options.jobs or max(20, int(options.kills * JOBS_PER_KILL))
    tally, more = run_kills(options.kills, options.seed, count, options.pools)
    for name in ("double_writers", "lost", "repeated", "orphans"):
        for line in getattr(tally, name):
            print(f"{name}: {line}", flush=True)
    figures = summary(tally) | more | {"seconds": round(time.monotonic() - began, 1)}
    if options.json:
        print(json.dumps(figures))
    else:
        for key, value in figures.items():
            print(f"{key}: {value}")
    sys.exit(0 if tally.clean and figures["kills"] == options.kills else 1)


if __name__ == "__main__":
    main()
