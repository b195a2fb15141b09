"""Where the time of a run went: who waited for whom, who worked, what was checked. Pure, from its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from baton.contract.states import RunState, TaskState
from baton.ledger.lines import EventLine

SHORTEST = 0.001
"""Seconds; what is shorter is left out."""


class Phase(StrEnum):
    """What a task, or the run itself, was at."""

    STARTING = "the run starts"
    OTHERS = "waits for other tasks"
    PLACE = "waits for a worker"
    PREPARING = "worktree and thread are prepared"
    WORKING = "the worker works"
    CHECKING = "captured and checked"
    BETWEEN = "between two attempts"
    MERGING = "merged onto the workspace"
    TOGETHER = "checked together and applied"


@dataclass(frozen=True)
class Segment:
    """One stretch of time in one phase. Times are seconds since 1970."""

    phase: Phase
    begin: float
    end: float
    detail: str = ""
    """Whom it waited for, or which attempt it was."""
    goes_on: bool = False

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass
class Lane:
    """One task in time."""

    task_id: str
    depends_on: Sequence[str]
    segments: list[Segment] = field(default_factory=list)
    held_up_by: str | None = None
    """The predecessor that came to rest last."""
    rested_at: float | None = None

    def seconds(self, phase: Phase) -> float:
        return sum(segment.seconds for segment in self.segments if segment.phase is phase)


@dataclass(frozen=True)
class Link:
    """One task in the chain that the run's length hangs on."""

    task_id: str
    seconds: float
    """From when it could begin until it came to rest."""


@dataclass(frozen=True)
class Timeline:
    """A run in time."""

    begin: float
    end: float
    lanes: Mapping[str, Lane]
    run: Sequence[Segment]
    """What the run itself was at: starting, merging, checking together."""
    pauses: Sequence[tuple[float, float]]
    """From when to when it was at rest before it went on."""

    @property
    def seconds(self) -> float:
        """Without the pauses."""
        return max(0.0, self.end - self.begin - sum(end - begin for begin, end in self.pauses))

    def totals(self) -> dict[Phase, float]:
        """Seconds in each phase, over all tasks and the run itself; only those that there were."""
        found: dict[Phase, float] = {}
        lanes = [segment for lane in self.lanes.values() for segment in lane.segments]
        # All tasks start with the run: that time counts once.
        own = [segment for segment in lanes if segment.phase is not Phase.STARTING]
        for segment in (*own, *self.run):
            found[segment.phase] = found.get(segment.phase, 0.0) + segment.seconds
        return {phase: found[phase] for phase in Phase if phase in found}

    def chain(self) -> list[Link]:
        """The tasks that waited one for another up to the one that came to rest last, in their order."""
        rested = [lane for lane in self.lanes.values() if lane.rested_at is not None]
        lane = max(rested, key=lambda one: one.rested_at or 0.0, default=None)
        links: list[Link] = []
        while lane is not None and lane.rested_at is not None and len(links) <= len(self.lanes):
            before = self.lanes.get(lane.held_up_by or "")
            began = self.begin if before is None or before.rested_at is None else before.rested_at
            links.append(Link(lane.task_id, self._at_work(began, lane.rested_at)))
            lane = before
        return links[::-1]

    def _at_work(self, begin: float, end: float) -> float:
        """Seconds between two moments without the pauses."""
        idle = sum(max(0.0, min(end, there) - max(begin, here)) for here, there in self.pauses)
        return max(0.0, end - begin - idle)


def read_timeline(
    tasks: Iterable[tuple[str, Sequence[str]]], events: Iterable[EventLine], until: float
) -> Timeline:
    """The timeline of a run from its events, those of the workers left out or not.

    `tasks` are ids with what each depends on. What still goes on ends at `until`.
    """
    reading = Reading(tasks)
    for event in events:
        reading.take(event)
    return reading.closed(until)


_NEXT = {
    "attempt.planned": Phase.PREPARING,
    "attempt.working": Phase.WORKING,
    "attempt.captured": Phase.CHECKING,
    "attempt.judged": Phase.BETWEEN,
}

_RESTING = {f"task.{state}" for state in TaskState if state.at_rest}
_RUN_RESTING = {f"run.{state}" for state in RunState if state.at_rest}

_RUN_NEXT = {
    "run.integrating": Phase.MERGING,
    "integration.merged": Phase.TOGETHER,
    "integration.reduced": Phase.TOGETHER,
    "integration.moved": Phase.MERGING,
    "integration.applied": None,
    "integration.held": None,
}


@dataclass
class _Open:
    phase: Phase
    since: float
    detail: str = ""


class Reading:
    """A run's events so far; more can be taken, also after a timeline has been made."""

    def __init__(self, tasks: Iterable[tuple[str, Sequence[str]]]) -> None:
        """`tasks` are ids with what each depends on."""
        self.lanes = lanes = {task_id: Lane(task_id, depends) for task_id, depends in tasks}
        self.seq = 0
        """The number of the last event."""
        self.after: dict[str, list[Lane]] = {}
        """The lanes that wait for each."""
        for lane in lanes.values():
            for name in lane.depends_on:
                self.after.setdefault(name, []).append(lane)
        self.open: dict[str, _Open] = {}
        self.run: list[Segment] = []
        self.run_open: _Open | None = None
        self.pauses: list[tuple[float, float]] = []
        self.began: float | None = None
        self.last = 0.0
        self.rested: float | None = None
        """When the run came to rest; None while it is at work."""
        self.went_on: float | None = None
        self.has_base = False

    def take(self, event: EventLine) -> None:
        """Take the next event."""
        if self.began is None:
            self._begin(event.at)
        if event.kind in _RUN_RESTING:
            # A run whose process had died was at rest from its last sign of life on.
            died = event.kind == "run.interrupted" and "why" in event.data
            self._rest(self.last if died else event.at)
        elif event.kind in ("run.resumed", "run.continued"):
            self._go_on(event.at)
        elif event.kind == "run.snapshot" or (event.kind == "run.running" and self.has_base):
            self.has_base = True
            self._started(event.at)
        elif event.kind in _RUN_NEXT:
            if self.rested is not None:
                self._go_on(event.at)
            self._run_phase(_RUN_NEXT[event.kind], event.at)
        elif event.task_id in self.lanes:
            self._task(self.lanes[event.task_id], event)
        self.last, self.seq = event.at, event.seq

    def closed(self, until: float) -> Timeline:
        """The timeline as it is; what still goes on ends at `until`."""
        end = until if self.rested is None else self.rested
        lanes = {task_id: replace(lane, segments=[*lane.segments]) for task_id, lane in self.lanes.items()}
        run = [*self.run]
        for task_id, now in self.open.items():
            self._close(lanes[task_id].segments, now, end, goes_on=True)
        if self.run_open is not None:
            self._close(run, self.run_open, end, goes_on=True)
        began = end if self.began is None else self.began
        return Timeline(begin=began, end=end, lanes=lanes, run=run, pauses=[*self.pauses])

    def _begin(self, at: float) -> None:
        self.began = at
        self.run_open = _Open(Phase.STARTING, at)
        self.open = {task_id: _Open(Phase.STARTING, at) for task_id in self.lanes}

    def _started(self, at: float) -> None:
        self._run_phase(None, at)
        for lane in self.lanes.values():
            now = self.open.get(lane.task_id)
            if now is not None and now.phase is Phase.STARTING:
                self._move(lane, self._waiting(lane), at)

    def _task(self, lane: Lane, event: EventLine) -> None:
        if event.kind in _RESTING:
            self._move(lane, None, event.at)
            lane.rested_at = event.at
            for other in self.after.get(lane.task_id, ()):
                now = self.open.get(other.task_id)
                waits = now is not None and now.phase is Phase.OTHERS
                if waits and self._waiting(other) is Phase.PLACE:
                    other.held_up_by = lane.task_id
                    self._move(other, Phase.PLACE, event.at, closing=lane.task_id)
        elif event.kind in _NEXT:
            if lane.task_id not in self.open and self.went_on is not None:
                self.open[lane.task_id] = _Open(Phase.PLACE, self.went_on, "to go on")
            lane.rested_at = None
            number = f"attempt {event.attempt}" if event.attempt and event.attempt > 1 else ""
            self._move(lane, _NEXT[event.kind], event.at, detail=number)

    def _waiting(self, lane: Lane) -> Phase:
        waits = any(self.lanes[name].rested_at is None for name in lane.depends_on if name in self.lanes)
        return Phase.OTHERS if waits else Phase.PLACE

    def _move(
        self, lane: Lane, phase: Phase | None, at: float, *, detail: str = "", closing: str = ""
    ) -> None:
        now = self.open.pop(lane.task_id, None)
        if now is not None:
            now.detail = closing or now.detail
            self._close(lane.segments, now, at)
        if phase is not None:
            self.open[lane.task_id] = _Open(phase, at, detail)

    def _run_phase(self, phase: Phase | None, at: float) -> None:
        if self.run_open is not None:
            self._close(self.run, self.run_open, at)
        self.run_open = None if phase is None else _Open(phase, at)

    def _rest(self, at: float) -> None:
        for task_id in list(self.open):
            self._move(self.lanes[task_id], None, at)
        self._run_phase(None, at)
        self.rested, self.went_on = at, None

    def _go_on(self, at: float) -> None:
        if self.rested is not None:
            self.pauses.append((self.rested, at))
        self.rested, self.went_on = None, at
        self.run_open = _Open(Phase.STARTING, at)

    def _close(self, segments: list[Segment], now: _Open, at: float, *, goes_on: bool = False) -> None:
        if goes_on or at - now.since >= SHORTEST:
            segments.append(Segment(now.phase, now.since, max(at, now.since), now.detail, goes_on))
