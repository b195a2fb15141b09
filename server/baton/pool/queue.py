"""Which job is next: in the order of the file, after its predecessors, writers one after another where they
must, none whose model is paused. Constant or logarithmic work per job, however many there are. Nothing here
waits or writes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import anyio

from baton.pool.jobs import Job


@dataclass(slots=True, eq=False)
class Entry:
    """One job that is still to be done."""

    job: Job
    position: int
    attempts: int = 0
    """Over all invocations."""
    touched: bool = False
    named: bool = False
    thread_id: str | None = None
    """Where the next attempt goes on."""
    run_id: str | None = None
    tries: int = 0
    """Retries in this invocation that count."""
    waits: int = 0
    """Tries that a limit cut short."""
    missing: int = 0
    """Predecessors that have not succeeded yet."""
    halt: anyio.Event | None = None
    """Of the attempt that is at work."""

    @property
    def takes_directory(self) -> bool:
        """Whether it writes in its directory itself; an isolated one has a worktree of its own."""
        return self.job.writes and not self.job.isolate


class Lane(NamedTuple):
    """Jobs that wait for the same things: their directory, where they write in it themselves, and their
    model."""

    directory: Path | None
    model: str


@dataclass(frozen=True)
class Hold:
    """That nothing may be asked of a model for a while."""

    model: str
    until: float
    why: str


@dataclass
class JobQueue:
    """The jobs that wait."""

    _lanes: dict[Lane, list[tuple[int, Entry]]] = field(default_factory=dict)
    _free: list[tuple[int, Lane]] = field(default_factory=list)
    """Lanes without a directory by the position of their first job; stale ones are passed over."""
    _writers: list[tuple[int, Lane]] = field(default_factory=list)
    """The same of those with one."""
    _blocked: set[Path] = field(default_factory=set)
    _held: dict[str, Hold] = field(default_factory=dict)
    """By model."""
    _models: set[str] = field(default_factory=set)
    _delayed: list[tuple[float, int, Entry]] = field(default_factory=list)
    _waiting: dict[str, list[Entry]] = field(default_factory=dict)
    """By predecessor."""
    _count: int = 0

    def __len__(self) -> int:
        """Jobs that are ready, held or delayed; those that wait for a predecessor are not counted."""
        return self._count

    @property
    def has_blocked(self) -> bool:
        return bool(self._blocked)

    def add(self, entry: Entry) -> None:
        """It may start."""
        self._count += 1
        model = entry.job.route.model
        self._models.add(model)
        lane = Lane(entry.job.workdir if entry.takes_directory else None, model)
        heapq.heappush(self._lanes.setdefault(lane, []), (entry.position, entry))
        self._offer(lane)

    def add_after(self, entry: Entry, predecessors: Iterable[str]) -> None:
        """It may start when all of these have succeeded."""
        for name in predecessors:
            entry.missing += 1
            self._waiting.setdefault(name, []).append(entry)

    def add_at(self, entry: Entry, moment: float) -> None:
        """It may start at a moment."""
        self._count += 1
        heapq.heappush(self._delayed, (moment, entry.position, entry))

    def release(self, now: float) -> None:
        """Let those start whose moment has come."""
        while self._delayed and self._delayed[0][0] <= now:
            _, _, entry = heapq.heappop(self._delayed)
            self._count -= 1
            self.add(entry)
        for model in [model for model, hold in self._held.items() if hold.until <= now]:
            del self._held[model]
            for lane in self._lanes:
                if lane.model == model:
                    self._offer(lane)

    def next_moment(self) -> float | None:
        """When something may start by itself that may not now."""
        moments = [hold.until for hold in self._held.values()]
        if self._delayed:
            moments.append(self._delayed[0][0])
        return min(moments, default=None)

    def succeeded(self, job_id: str) -> None:
        """Those that waited for it may start, when they wait for nothing else."""
        for entry in self._waiting.pop(job_id, ()):
            entry.missing -= 1
            if entry.missing == 0:
                self.add(entry)

    def lost(self, job_id: str) -> list[tuple[Entry, str]]:
        """Those that will never start because of it, directly or not, each with what it waited for."""
        found: list[tuple[Entry, str]] = []
        names, seen = [job_id], set[str]()
        while names:
            name = names.pop()
            for entry in self._waiting.pop(name, ()):
                if entry.job.id not in seen:
                    seen.add(entry.job.id)
                    found.append((entry, name))
                    names.append(entry.job.id)
        return found

    def pop(self, may_write: Callable[[Entry], bool], *, writers: bool) -> Entry | None:
        """The next one that may start; None when there is none now.

        `may_write` says whether a writer gets its directory now, and takes it; where it does not, the
        directory is passed over until `unblock`. Without `writers` none starts at all.
        """
        while True:
            free = self._first(self._free)
            writer = self._first(self._writers) if writers else None
            if writer is None:
                return None if free is None else self._take(free)
            position, entry = self._lanes[writer][0]
            if free is not None and self._lanes[free][0][0] < position:
                return self._take(free)
            if may_write(entry):
                return self._take(writer)
            self._blocked.add(entry.job.workdir)

    def unblock(self, workdir: Path | None = None) -> None:
        """A directory may be free again; None: any may."""
        for each in [workdir] if workdir is not None else list(self._blocked):
            self._blocked.discard(each)
            for model in self._models:
                self._offer(Lane(each, model))

    def hold(self, model: str, until: float, why: str) -> None:
        """Pass over the jobs of a model until a moment."""
        self._held[model] = Hold(model, until, why)

    def has(self, model: str) -> bool:
        """Whether jobs of a model are ready."""
        return any(lane.model == model for lane in self._lanes)

    def held_back(self) -> Hold | None:
        """The hold that ends first, when all that is ready is held; else None."""
        if not self._held or not self._lanes or any(lane.model not in self._held for lane in self._lanes):
            return None
        return min((self._held[lane.model] for lane in self._lanes), key=lambda hold: hold.until)

    def _take(self, lane: Lane) -> Entry:
        heap = self._lanes[lane]
        _, entry = heapq.heappop(heap)
        self._count -= 1
        if heap:
            self._offer(lane)
        else:
            del self._lanes[lane]
        return entry

    def _offer(self, lane: Lane) -> None:
        heap = self._lanes.get(lane)
        if heap:
            offers = self._free if lane.directory is None else self._writers
            heapq.heappush(offers, (heap[0][0], lane))

    def _first(self, offers: list[tuple[int, Lane]]) -> Lane | None:
        while offers:
            position, lane = offers[0]
            heap = self._lanes.get(lane)
            passed_over = lane.directory in self._blocked or lane.model in self._held
            if heap and heap[0][0] == position and not passed_over:
                return lane
            heapq.heappop(offers)
        return None
