"""A timeline as bars and words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from baton.report.amounts import took
from baton.report.timeline import Lane, Link, Phase, Segment, Timeline

SCALE = 1000
"""Width of every lane in its own units; it is stretched to the width there is."""

PAUSE = 16
"""Units that a time at rest takes, however long it was."""

NARROWEST = 2.0

NOTABLE = 0.05
"""Seconds; less is not listed."""

COLOURS = {
    Phase.STARTING: "wait",
    Phase.OTHERS: "others",
    Phase.PLACE: "wait",
    Phase.PREPARING: "prepare",
    Phase.WORKING: "work",
    Phase.CHECKING: "check",
    Phase.BETWEEN: "wait",
    Phase.MERGING: "merge",
    Phase.TOGETHER: "check",
}

LEGEND = (
    ("wait", "waits for a worker or the run"),
    ("others", "waits for other tasks"),
    ("prepare", "is prepared"),
    ("work", "the worker works"),
    ("check", "is checked"),
    ("merge", "is merged"),
)


@dataclass(frozen=True)
class Bar:
    """One stretch of a lane."""

    x: float
    width: float
    colour: str
    title: str


@dataclass(frozen=True)
class LaneShown:
    task_id: str
    bars: Sequence[Bar]
    told: str
    """The same in words, short."""


@dataclass(frozen=True)
class Went:
    """How much time went into one thing."""

    what: str
    seconds: float
    share: float
    """Of the longest, from 0 to 1."""
    colour: str


@dataclass(frozen=True)
class TimelineShown:
    known: bool
    """Whether anything is on record of when the run did what."""
    lanes: Sequence[LaneShown]
    run: Sequence[Bar]
    run_told: str
    ticks: Sequence[str]
    legend: Sequence[tuple[str, str]]
    went: Sequence[Went]
    chain: Sequence[Link]
    """Empty unless a task waited for another."""
    seconds: float
    pauses: Sequence[float]
    """Seconds of each."""


def show_timeline(timeline: Timeline, shown: Iterable[str]) -> TimelineShown:
    """The timeline with the lanes of these tasks."""
    scale = _Scale(timeline)
    lanes = [timeline.lanes[task_id] for task_id in shown if task_id in timeline.lanes]
    totals = timeline.totals()
    longest = max(totals.values(), default=0.0) or 1.0
    colours = {bar.colour for lane in lanes for bar in scale.bars(lane.segments)}
    colours |= {bar.colour for bar in scale.bars(timeline.run)}
    chain = timeline.chain()
    return TimelineShown(
        known=bool(timeline.run),
        lanes=[LaneShown(lane.task_id, scale.bars(lane.segments), _told(lane)) for lane in lanes],
        run=scale.bars(timeline.run),
        run_told=_run_told(timeline.run),
        ticks=scale.ticks(),
        legend=[(colour, words) for colour, words in LEGEND if colour in colours],
        went=[
            Went(phase.value, seconds, seconds / longest, COLOURS[phase])
            for phase, seconds in totals.items()
            if seconds >= NOTABLE
        ],
        chain=chain if len(chain) > 1 else [],
        seconds=timeline.seconds,
        pauses=[end - begin for begin, end in timeline.pauses],
    )


class _Scale:
    """From moments to units: times at rest are cut out."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        room = SCALE - PAUSE * len(timeline.pauses)
        self.per_second = max(room, SCALE / 2) / max(timeline.seconds, 0.001)

    def x(self, moment: float) -> float:
        units = 0.0
        at = self.timeline.begin
        for begin, end in self.timeline.pauses:
            if moment <= begin:
                break
            units += (begin - at) * self.per_second
            if moment < end:
                return units
            units += PAUSE
            at = end
        return units + max(0.0, moment - at) * self.per_second

    def bars(self, segments: Sequence[Segment]) -> list[Bar]:
        made = []
        for segment in segments:
            x = self.x(segment.begin)
            width = max(NARROWEST, self.x(segment.end) - x)
            made.append(Bar(round(x, 1), round(width, 1), COLOURS[segment.phase], _title(segment)))
        return made

    def ticks(self) -> list[str]:
        """Times along the axis, evenly spread; with pauses the axis is no scale, and has none."""
        if self.timeline.pauses:
            return ["", took(self.timeline.seconds) + " without the time at rest"]
        return [took(self.timeline.seconds * part / 4) if part else "0" for part in range(5)]


def _title(segment: Segment) -> str:
    detail = f" ({segment.detail})" if segment.detail else ""
    so_far = " so far" if segment.goes_on else ""
    return f"{segment.phase.value}{detail}: {took(segment.seconds)}{so_far}"


def _told(lane: Lane) -> str:
    words = []
    others = lane.seconds(Phase.OTHERS)
    if others >= 0.05:
        whom = f" for {lane.held_up_by}" if lane.held_up_by else ""
        words.append(f"waited {took(others)}{whom}")
    if worked := lane.seconds(Phase.WORKING):
        words.append(f"worked {took(worked)}")
    if not words:
        words.append("has not begun" if lane.rested_at is None else "did not run")
    return ", ".join(words)


def _run_told(segments: Sequence[Segment]) -> str:
    merging = sum(one.seconds for one in segments if one.phase in (Phase.MERGING, Phase.TOGETHER))
    return f"integrated in {took(merging)}" if merging else ""
