"""What a person reads of a pool: only what is known, and always the command that goes on."""

from __future__ import annotations

import io
import shlex
import time
from dataclasses import replace

import pytest
from pydantic import JsonValue
from rich.console import Console

from baton.cli.pool_display import Lines, picture
from baton.contract.errors import StateUnavailable
from baton.ledger.pool_records import JobState, PoolRecord, PoolState
from baton.pool.events import PoolEnd, PoolEvent
from baton.pool.present import (
    clock,
    counts_text,
    duration,
    event_line,
    progress_line,
    retry_command,
    status_json,
    status_lines,
    summary_json,
    summary_lines,
)
from baton.pool.status import PoolStatus

FLAGS: dict[str, JsonValue] = {
    "concurrency": 5,
    "retries": 0,
    "backoff_seconds": 0.5,
    "allow_disjoint_parallel_writers": True,
    "project": "/home/p/a project",
}
RECORD = PoolRecord(
    pool_id="p1",
    jobs_file="/home/p/jobs.jsonl",
    run_dir="/home/p/run",
    state=PoolState.RUNNING,
    settings={"flags": FLAGS},
)
STATUS = PoolStatus(
    record=RECORD,
    alive=True,
    counts={
        JobState.SUCCEEDED: 40,
        JobState.FAILED: 2,
        JobState.RUNNING: 3,
        JobState.QUEUED: 5,
        JobState.DROPPED: 9,
    },
    total=50,
    running=3,
    rate_per_minute=None,
    eta_seconds=None,
    tokens=None,
    limit=None,
    pause_until=None,
    pause_why=None,
    breaker=None,
    back_at=None,
    failed=(("a", "it broke\non two lines"), ("b", "x" * 1000)),
)


def end(**fields: object) -> PoolEnd:
    values: dict[str, object] = {
        "pool_id": "p1",
        "state": PoolState.DONE,
        "counts": {JobState.SUCCEEDED: 3, JobState.FAILED: 2},
        "failed": (("a", "why"), ("b c", "why")),
    }
    return PoolEnd(**{**values, **fields})  # type: ignore[arg-type]


def test_nothing_is_said_that_is_not_known() -> None:
    assert progress_line(STATUS) == "42/50  40 succeeded, 2 failed, 3 running, 5 queued"


def test_speed_time_left_tokens_and_limits_are_said_where_they_are_known() -> None:
    noon = time.time()
    status = replace(
        STATUS,
        rate_per_minute=12.34,
        eta_seconds=1500,
        tokens=1234567,
        limit=4,
        pause_until=noon,
        pause_why="rate limit",
        breaker="5 crashes in a row",
    )
    line = progress_line(status)
    for part in ("12.3 jobs/min", "about 25 min left", "1,234,567 tokens", "4 at once", "5 crashes in a row"):
        assert part in line
    assert f"paused until {clock(noon)}: rate limit" in line


def test_a_pool_at_rest_is_told_with_the_commands_that_go_on() -> None:
    status = replace(
        STATUS,
        alive=False,
        record=RECORD.model_copy(update={"state": PoolState.STOPPED, "note": "usage limit"}),
        counts={JobState.SUCCEEDED: 1, JobState.FAILED: 2, JobState.QUEUED: 1},
        total=4,
    )
    lines = list(status_lines(status))
    assert "  usage limit" in lines and "  a: it broke on two lines" in lines
    assert all("\n" not in line and len(line) < 400 for line in lines)
    resume = next(line for line in lines if "go on:" in line).split("go on:")[1]
    assert shlex.split(resume) == [
        *("baton", "pool", "run", "/home/p/jobs.jsonl", "--concurrency", "5", "--retries", "0"),
        *("--backoff", "0.5", "--allow-disjoint-parallel-writers", "--project", "/home/p/a project"),
    ]
    assert lines[-1].split() == ["again:", "baton", "pool", "retry", "p1", "a", "b"]


def test_a_summary_names_what_failed_when_to_come_back_and_what_to_type() -> None:
    back = time.time() + 60
    stopped = end(
        state=PoolState.STOPPED,
        note="usage limit",
        back_at=back,
        counts={JobState.SUCCEEDED: 1, JobState.FAILED: 2, JobState.QUEUED: 7},
    )
    lines = list(summary_lines(stopped, RECORD, 5000))
    assert lines[0] == "pool p1 stopped: 1 succeeded, 2 failed, 7 queued of 10; 5,000 tokens"
    assert f"  come back at {clock(back)}" in lines
    assert lines[-1] == "  again:  baton pool retry p1 a 'b c'"
    told = summary_json(stopped, RECORD, None)
    assert told["retry"] == "baton pool retry p1 a 'b c'" and told["resume"].startswith("baton pool run ")
    assert (told["total"], told["tokens"], told["backAt"]) == (10, None, back)


def test_a_pool_that_is_done_offers_nothing_to_do() -> None:
    done = end(counts={JobState.SUCCEEDED: 3, JobState.DROPPED: 1}, failed=())
    assert list(summary_lines(done, RECORD, None)) == ["pool p1 done: 3 succeeded of 3"]
    told = summary_json(done, RECORD, None)
    assert (told["succeeded"], told["retry"], told["resume"]) == (True, None, None)


def test_a_cancelled_pool_is_not_pressed_to_go_on() -> None:
    cancelled = end(state=PoolState.CANCELLED, counts={JobState.QUEUED: 2}, failed=())
    assert list(summary_lines(cancelled, RECORD, None)) == ["pool p1 cancelled: 2 queued of 2"]


def test_a_retry_names_all_or_none() -> None:
    counts = {JobState.FAILED: 2, JobState.INTERRUPTED: 1, JobState.SKIPPED: 1}
    assert retry_command("p1", ["a", "b", "c", "d"], counts) == "baton pool retry p1 a b c d"
    assert retry_command("p1", ["a", "b", "c"], counts) == "baton pool retry p1"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (PoolEvent("job.ended", "a", 1, {"state": "succeeded", "reason": None}), "ok      a"),
        (PoolEvent("job.ended", "a", 1, {"state": "failed", "reason": "why"}), "failed  a: why"),
        (PoolEvent("job.retry", "a", 1, {"why": "crash", "seconds": 4.2}), "again   a in 4 s: crash"),
        (PoolEvent("job.retry", "a", 1, {"why": None, "seconds": 0.0}), "again   a"),
        (PoolEvent("job.started", "a", 1), None),
        (PoolEvent("pool.limit", data={"limit": 2}), "at most 2 at once now"),
        (PoolEvent("pool.breaker", data={"why": "5 crashes"}), "breaker open: 5 crashes"),
        (PoolEvent("pool.stopping", data={"why": "login"}), "stopping: login"),
        (
            PoolEvent("pool.stopping", data={"why": "told", "writers": 2}),
            "stopping: told; 2 writers may end first, unless told again",
        ),
        (PoolEvent("pool.resumed"), "goes on"),
        (PoolEvent("pool.paused", data={"until": None, "why": "limit"}), "paused: limit"),
        (PoolEvent("something.new"), None),
    ],
)
def test_an_event_is_one_line_or_none(event: PoolEvent, line: str | None) -> None:
    assert event_line(event) == line


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (89, "89 s"), (600, "10 min"), (5400, "1 h 30 min"), (4 * 86400, "4 days")],
)
def test_durations_are_as_exact_as_they_matter(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_counts_of_nothing_are_said() -> None:
    assert counts_text({}) == "no jobs"


@pytest.mark.parametrize("columns", [22, 30, 60])
def test_the_table_fits_a_narrow_terminal_and_shows_foreign_text_harmlessly(columns: int) -> None:
    status = replace(STATUS, breaker="\x1b[31mred\x07", tokens=12)
    out = io.StringIO()
    Console(file=out, width=columns, highlight=False).print(picture(status, columns))
    shown = out.getvalue()
    assert "42/50" in shown.splitlines()[0] and "…" not in shown
    assert "12 tokens" in shown and "\x1b" not in shown and "\x07" not in shown
    assert max(map(len, shown.splitlines())) <= columns


def test_what_opened_the_breaker_is_said_once() -> None:
    until = time.time() + 5
    status = replace(STATUS, breaker="8 in a row", pause_until=until, pause_why="8 in a row")
    line = progress_line(status)
    assert line.count("8 in a row") == 1 and f"paused until {clock(until)}; breaker open" in line


def test_json_has_every_state_and_no_secret_of_the_rows() -> None:
    told = status_json(STATUS)
    assert set(told["counts"]) == {state.value for state in JobState}
    assert told["failed"][0] == {"id": "a", "reason": "it broke\non two lines"}


def test_a_display_that_cannot_look_does_not_disturb_the_pool(capsys: pytest.CaptureFixture[str]) -> None:
    def look() -> PoolStatus:
        raise StateUnavailable("the ledger is busy")

    with Lines(look) as display:
        display.tell(PoolEvent("pool.began"))
        display.tell(PoolEvent("job.ended", "a", 1, {"state": "succeeded"}))
    assert capsys.readouterr().out == "ok      a\n"
