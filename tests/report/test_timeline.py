"""Where the time of a run went, read from its events."""

from __future__ import annotations

from typing import Any

from baton.ledger.lines import EventLine
from baton.report.timeline import Link, Phase, Reading, Timeline, read_timeline
from baton.report.timeline_shown import show_timeline
from baton.report.timelines import MAX_RUNS, Timelines


def events(
    *told: tuple[float, str] | tuple[float, str, str] | tuple[float, str, str, int],
) -> list[EventLine]:
    made = []
    for seq, (at, kind, *rest) in enumerate(told, start=1):
        task, attempt = (*rest, None, None)[:2]
        made.append(EventLine("r", seq, at, kind, task, attempt, {}))
    return made


def attempt(task: str, planned: float, working: float, captured: float, done: float) -> list[Any]:
    return [
        (planned, "attempt.planned", task, 1),
        (working, "attempt.working", task, 1),
        (captured, "attempt.captured", task, 1),
        (done, "task.done", task),
    ]


def phases(timeline: Timeline, task: str) -> list[tuple[Phase, float, str]]:
    return [(one.phase, round(one.seconds, 3), one.detail) for one in timeline.lanes[task].segments]


STARTED = [(100.0, "run.admitted"), (101.0, "run.running"), (102.0, "run.snapshot")]


def test_a_task_is_seen_waiting_for_the_one_that_held_it_up() -> None:
    told = [
        *STARTED,
        *attempt("a", 102.0, 103.0, 106.0, 108.0),
        *attempt("b", 102.0, 104.0, 105.0, 106.0),
        *attempt("c", 108.5, 109.0, 110.0, 112.0),
    ]
    told.sort(key=lambda one: one[0])
    timeline = read_timeline(
        [("a", ()), ("b", ()), ("c", ("a", "b"))], events(*told, (112.0, "run.done")), 999.0
    )
    assert phases(timeline, "a") == [
        (Phase.STARTING, 2.0, ""),
        (Phase.PREPARING, 1.0, ""),
        (Phase.WORKING, 3.0, ""),
        (Phase.CHECKING, 2.0, ""),
    ]
    assert phases(timeline, "c") == [
        (Phase.STARTING, 2.0, ""),
        (Phase.OTHERS, 6.0, "a"),
        (Phase.PLACE, 0.5, ""),
        (Phase.PREPARING, 0.5, ""),
        (Phase.WORKING, 1.0, ""),
        (Phase.CHECKING, 2.0, ""),
    ]
    assert timeline.chain() == [Link("a", 8.0), Link("c", 4.0)]
    assert timeline.seconds == 12.0


def test_the_start_of_a_run_counts_once_and_the_rest_for_every_task() -> None:
    told = [*STARTED, *attempt("a", 102.0, 103.0, 105.0, 106.0), *attempt("b", 102.0, 104.0, 105.0, 106.0)]
    told.sort(key=lambda one: one[0])
    timeline = read_timeline([("a", ()), ("b", ())], events(*told, (106.0, "run.done")), 999.0)
    assert timeline.totals() == {
        Phase.STARTING: 2.0,
        Phase.PREPARING: 3.0,
        Phase.WORKING: 3.0,
        Phase.CHECKING: 2.0,
    }


def test_merging_and_checking_together_belong_to_the_run_itself() -> None:
    told = [
        *STARTED,
        *attempt("a", 102.0, 103.0, 105.0, 106.0),
        (106.0, "run.integrating"),
        (107.0, "integration.merged"),
        (110.0, "integration.moved"),
        (111.0, "integration.merged"),
        (115.0, "integration.applied"),
        (115.0, "run.done"),
    ]
    timeline = read_timeline([("a", ())], events(*told), 999.0)
    assert [(one.phase, one.seconds) for one in timeline.run] == [
        (Phase.STARTING, 2.0),
        (Phase.MERGING, 1.0),
        (Phase.TOGETHER, 3.0),
        (Phase.MERGING, 1.0),
        (Phase.TOGETHER, 4.0),
    ]


def test_time_at_rest_before_a_run_goes_on_is_no_work() -> None:
    told = [
        *STARTED,
        (102.0, "attempt.planned", "a", 1),
        (103.0, "attempt.working", "a", 1),
        (104.0, "task.interrupted", "a"),
        (104.0, "run.interrupted"),
        (5000.0, "run.resumed"),
        (5001.0, "run.running"),
        (5002.0, "attempt.planned", "a", 2),
        (5003.0, "attempt.working", "a", 2),
        (5007.0, "attempt.captured", "a", 2),
        (5008.0, "task.done", "a"),
        (5008.0, "run.done"),
    ]
    timeline = read_timeline([("a", ())], events(*told), 9999.0)
    assert timeline.pauses == [(104.0, 5000.0)]
    assert timeline.seconds == 12.0
    assert timeline.totals()[Phase.WORKING] == 5.0
    shown = show_timeline(timeline, ["a"])
    assert all(bar.x >= 0 and bar.x + bar.width <= 1000.01 for bar in shown.lanes[0].bars)


def test_a_process_that_died_did_not_work_until_somebody_noticed() -> None:
    told = [
        *STARTED,
        (102.0, "attempt.planned", "a", 1),
        (103.0, "attempt.working", "a", 1),
        (104.0, "worker.command", "a", 1),
    ]
    died = EventLine("r", 9, 9000.0, "run.interrupted", None, None, {"why": "its process died"})
    timeline = read_timeline([("a", ())], [*events(*told), died], 9999.0)
    assert phases(timeline, "a")[-1] == (Phase.WORKING, 1.0, "")
    assert timeline.seconds == 4.0


def test_what_goes_on_ends_now() -> None:
    told = [*STARTED, (102.0, "attempt.planned", "a", 1), (103.0, "attempt.working", "a", 1)]
    timeline = read_timeline([("a", ()), ("b", ("a",))], events(*told), 110.0)
    assert phases(timeline, "a")[-1] == (Phase.WORKING, 7.0, "")
    assert timeline.lanes["a"].segments[-1].goes_on
    assert phases(timeline, "b")[-1] == (Phase.OTHERS, 8.0, "")


def test_a_run_without_events_has_no_time() -> None:
    timeline = read_timeline([("a", ())], [], 110.0)
    assert (timeline.seconds, timeline.lanes["a"].segments, timeline.chain()) == (0.0, [], [])
    assert not show_timeline(timeline, ["a"]).known


def test_further_attempts_say_which_they_were() -> None:
    told = [
        *STARTED,
        *attempt("a", 102.0, 103.0, 105.0, 106.0)[:-1],
        (106.0, "attempt.judged", "a", 1),
        (107.0, "attempt.planned", "a", 2),
        (108.0, "attempt.working", "a", 2),
        (109.0, "task.done", "a"),
    ]
    timeline = read_timeline([("a", ())], events(*told), 110.0)
    assert phases(timeline, "a")[-3:] == [
        (Phase.BETWEEN, 1.0, ""),
        (Phase.PREPARING, 1.0, "attempt 2"),
        (Phase.WORKING, 1.0, "attempt 2"),
    ]


def test_a_timeline_that_is_read_on_is_the_same_as_one_read_at_once() -> None:
    told = [
        *STARTED,
        *attempt("a", 102.0, 103.0, 106.0, 108.0),
        *attempt("b", 108.5, 109.0, 110.0, 112.0),
        (112.0, "run.integrating"),
        (113.0, "integration.merged"),
        (114.0, "run.held"),
        (200.0, "run.integrating"),
        (201.0, "integration.applied"),
        (201.0, "run.done"),
    ]
    tasks = [("a", ()), ("b", ("a",))]
    happened = events(*told)
    reading = Reading(tasks)
    for number, event in enumerate(happened, start=1):
        reading.take(event)
        assert reading.closed(500.0) == read_timeline(tasks, happened[:number], 500.0)
    assert reading.closed(500.0).pauses == [(114.0, 200.0)]


def test_a_run_that_is_looked_at_again_is_read_on_from_where_it_was_left() -> None:
    class Pages:
        asked: list[int] = []

        def happenings(self, run_id: str, after: int) -> list[EventLine]:
            self.asked.append(after)
            return [event for event in happened if event.seq > after]

    happened = events(*STARTED)
    timelines = Timelines()
    assert timelines.timeline(Pages(), "r", [("a", ())], 103.0).seconds == 3.0
    happened += events(*STARTED, (104.0, "attempt.planned", "a", 1))[3:]
    assert timelines.timeline(Pages(), "r", [("a", ())], 106.0).lanes["a"].segments[-1].seconds == 2.0
    assert Pages.asked == [0, 3]
    for number in range(MAX_RUNS):
        timelines.timeline(Pages(), f"r{number}", [("a", ())], 106.0)
    timelines.timeline(Pages(), "r", [("a", ())], 106.0)
    assert Pages.asked[-1] == 0  # it had been forgotten
