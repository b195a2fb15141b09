"""The pages on runs: what each shows, read from the ledger."""

from __future__ import annotations

import time
from typing import Any

from baton.contract.errors import InvalidInput, NotFound
from baton.contract.states import RunState, Verdict
from baton.contract.visible import one_line
from baton.engine.house import House
from baton.engine.tell import tell
from baton.ledger.overview import RunFilter
from baton.ledger.pages import Pages
from baton.report.dashboard.pager import pager
from baton.report.dashboard.query import Query
from baton.report.excerpt import decoded
from baton.report.links import DashboardLinks
from baton.report.page import read_report, render_report, supervisors_shown, task_reader
from baton.report.run_shown import run_head, run_heads, show_run
from baton.report.timelines import Timelines

RUNS, TASKS, EVENTS = 40, 40, 200
"""Entries of a page."""

DIFF_LINES = 1_500

TEXT_BYTES = 100_000
"""Of a text on one page."""

Shown = tuple[str, dict[str, Any]]

LINKS = DashboardLinks()


def runs(house: House, query: Query) -> Shown:
    """All runs, the newest first."""
    pages, now = Pages(house.ledger.db), time.time()
    state, verdict = query.text("state"), query.text("verdict")
    if state is not None and state not in tuple(RunState):
        raise InvalidInput(f"state={state[:40]} is none; states are {', '.join(RunState)}")
    if verdict is not None and verdict not in tuple(Verdict):
        raise InvalidInput(f"verdict={verdict[:40]} is none; verdicts are {', '.join(Verdict)}")
    chosen = RunFilter(
        states=(state,) if state else (),
        workspace=query.text("workspace"),
        label=query.text("text"),
        verdict=verdict,
    )
    shown = pager(query, pages.run_count(chosen), RUNS)
    lines = pages.runs_page(shown.offset, RUNS, chosen)
    return "dashboard/runs.html", {
        "heads": run_heads(house, pages, lines, now),
        "pager": shown,
        "query": query,
        "is_filtered": chosen != RunFilter(),
        "states": [*RunState],
        "verdicts": [*Verdict],
        "now": now,
        "live": "runs",
    }


def run(house: House, query: Query, timelines: Timelines | None = None) -> Shown:
    """One run with a page of its tasks."""
    pages, now, run_id = Pages(house.ledger.db), time.time(), query.path["run_id"]
    tasks = pager(query, pages.task_count(run_id), TASKS)
    shown = show_run(house, pages, run_id, now, tasks.offset, TASKS, timelines)
    record = house.ledger.run(run_id)
    reader = task_reader(house, record)
    only = None
    if tasks.total == 1:
        task = house.ledger.tasks(run_id)[0]
        only = reader.task(task, house.ledger.attempts(run_id, task.task_id))
    return "dashboard/run.html", {
        "run": shown,
        "pager": tasks,
        "integrations": reader.integrations(),
        "only": only,
        "links": LINKS,
        "now": now,
        "live": f"run/{run_id}",
    }


def task(house: House, query: Query) -> Shown:
    """The evidence of one task."""
    run_id, task_id = query.path["run_id"], query.path["task_id"]
    record = house.ledger.run(run_id)
    number = query.number("attempt", 1)
    attempts = house.ledger.attempts(run_id, task_id)
    if number is not None and not any(attempt.attempt == number for attempt in attempts):
        raise NotFound(f"task {task_id} of run {run_id} has no attempt {number}; it has {len(attempts)}")
    shown = task_reader(house, record).task(house.ledger.task(run_id, task_id), attempts, number=number)
    head = run_head(house, Pages(house.ledger.db), run_id, time.time())
    return "dashboard/task.html", {
        "head": head,
        "task": shown,
        "links": LINKS,
        "live": f"run/{run_id}",
    }


def diff(house: House, query: Query) -> Shown:
    """A part of one attempt's diff."""
    run_id, task_id = query.path["run_id"], query.path["task_id"]
    number, first = query.number("attempt", 1) or 1, query.number("line") or 0
    record = house.ledger.run(run_id)
    attempt = house.ledger.attempt(run_id, task_id, number)
    found, why = task_reader(house, record).diff(attempt, first, DIFF_LINES)
    return "dashboard/diff.html", {
        "run_id": run_id,
        "task_id": task_id,
        "attempt": number,
        "first": first,
        "diff": found,
        "no_diff": why,
        "links": LINKS,
        "live": None,
    }


def events(house: House, query: Query) -> Shown:
    """Events of a run or of one of its tasks: the last ones, or those around a number."""
    pages, run_id = Pages(house.ledger.db), query.path["run_id"]
    head = run_head(house, pages, run_id, time.time())
    task_id, after, before = query.text("task"), query.number("after"), query.number("before")
    if after is not None:
        found = pages.events_page(run_id, after, EVENTS, task_id)
    else:
        found = pages.events_before(run_id, before or 2**62, EVENTS, task_id)
    last = pages.last_event(run_id, task_id)
    at_end = not found or last is None or found[-1].seq == last.seq
    at_start = not found or not pages.events_before(run_id, found[0].seq, 1, task_id)
    return "dashboard/events.html", {
        "head": head,
        "task_id": task_id,
        "events": [(event, one_line(tell(event.kind, event.data))) for event in found],
        "earlier": None if at_start else query.with_(before=found[0].seq, after=None),
        "later": None if at_end else query.with_(after=found[-1].seq, before=None),
        "live": f"run/{run_id}" if at_end else None,
    }


def text(house: House, query: Query) -> Shown:
    """The whole of a long text, page by page."""
    run_id, artifact = query.path["run_id"], query.path["artifact"]
    house.ledger.run(run_id)
    refs = [ref for ref in house.ledger.artifact_refs(run_id) if ref.artifact == artifact]
    if not refs:
        raise NotFound(f"run {run_id} has no text {artifact[:80]!r}")
    size = house.artifacts.size(artifact)
    shown = pager(query, size, TEXT_BYTES)
    # A few bytes more at the edges, so that no character is cut in two.
    data = house.artifacts.read(artifact, shown.offset, TEXT_BYTES + 4)
    begin = decoded(data, cut_begin=shown.page > 1)
    whole = begin if len(data) <= TEXT_BYTES else _up_to(data, shown.page > 1)
    return "dashboard/text.html", {
        "run_id": run_id,
        "ref": refs[0],
        "text": whole,
        "size": size,
        "pager": shown,
        "live": None,
    }


def _up_to(data: bytes, inside: bool) -> str:
    """The page's bytes and the rest of a character that begins in them."""
    end = TEXT_BYTES
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return decoded(data[:end], cut_begin=inside)


def usage(house: House, query: Query) -> Shown:
    """The workers' tokens beside the supervisors'."""
    run_id = query.path["run_id"]
    record = house.ledger.run(run_id)
    shown = show_run(house, Pages(house.ledger.db), run_id, time.time(), 0, 0)
    return "dashboard/usage.html", {
        "run": shown,
        "supervisors": supervisors_shown(house, record),
        "live": None,
    }


def whole_report(house: House, run_id: str) -> str:
    """The run as one page to keep."""
    return render_report(read_report(house, run_id, time.time()))
