"""Which job is next: in the order of the file, after its predecessors, writers one after another where they
must. Constant or logarithmic work per job, however many there are. Nothing here waits or writes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

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


@dataclass
class JobQueue:
    """The jobs that wait."""

    _free: list[tuple[int, Entry]] = field(default_factory=list)
    _writers: dict[Path, list[tuple[int, Entry]]] = field(default_factory=dict)
    _open: list[tuple[int, Path]] = field(default_factory=list)
    """Directories by the position of their first writer; stale ones are passed over."""
    _blocked: set[Path] = field(default_factory=set)
    _delayed: list[tuple[float, int, Entry]] = field(default_factory=list)
    _waiting: dict[str, list[Entry]] = field(default_factory=dict)
    """By predecessor."""
    _count: int = 0

    def __len__(self) -> int:
        """Jobs that are ready or delayed; those that wait for a predecessor are not counted."""
        return self._count

    @property
    def has_blocked(self) -> bool:
        return bool(self._blocked)

    def add(self, entry: Entry) -> None:
        """It may start."""
        self._count += 1
        item = (entry.position, entry)
        if not entry.takes_directory:
            heapq.heappush(self._free, item)
            return
        workdir = entry.job.workdir
        heap = self._writers.setdefault(workdir, [])
        heapq.heappush(heap, item)
        self._offer(workdir)

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

    def next_moment(self) -> float | None:
        """When the next delayed one may start."""
        return self._delayed[0][0] if self._delayed else None

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
            workdir = self._next_directory() if writers else None
            if workdir is None:
                return self._take_free()
            position, entry = self._writers[workdir][0]
            if self._free and self._free[0][0] < position:
                return self._take_free()
            if may_write(entry):
                heapq.heappop(self._writers[workdir])
                self._count -= 1
                if self._writers[workdir]:
                    self._offer(workdir)
                else:
                    del self._writers[workdir]
                return entry
            self._blocked.add(workdir)

    def unblock(self, workdir: Path | None = None) -> None:
        """A directory may be free again; None: any may."""
        for each in [workdir] if workdir is not None else list(self._blocked):
            self._blocked.discard(each)
            if each in self._writers:
                self._offer(each)

    def _take_free(self) -> Entry | None:
        if not self._free:
            return None
        self._count -= 1
        return heapq.heappop(self._free)[1]

    def _offer(self, workdir: Path) -> None:
        heapq.heappush(self._open, (self._writers[workdir][0][0], workdir))

    def _next_directory(self) -> Path | None:
        while self._open:
            position, workdir = self._open[0]
            heap = self._writers.get(workdir)
            if workdir not in self._blocked and heap and heap[0][0] == position:
                return workdir
            heapq.heappop(self._open)
        return None
