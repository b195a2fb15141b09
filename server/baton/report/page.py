"""The report on one run: everything in one page that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from baton import __version__
from baton.contract.errors import BatonError, NotFound
from baton.engine.house import House
from baton.engine.private import open_for_reading
from baton.engine.spending import cost, prices_or_fault
from baton.engine.supervisor_usage import supervisors
from baton.ledger.pages import Pages
from baton.ledger.records import RunRecord
from baton.report.links import ReportLinks
from baton.report.run_shown import RunShown, SupervisorShown, show_run
from baton.report.task_shown import IntegrationShown, TaskReader, TaskShown
from baton.report.templating import render, source

MAX_TASKS = 150
"""Tasks whose evidence is in one page, unless they are named."""

MARK = "<!-- baton report -->"


@dataclass(frozen=True)
class Report:
    """What a report shows."""

    run: RunShown
    record: RunRecord
    tasks: Sequence[TaskShown]
    left_out: int
    """Tasks whose evidence is not in it."""
    integrations: Sequence[IntegrationShown]
    supervisors: Sequence[SupervisorShown]
    now: float


def read_report(house: House, run_id: str, now: float, task_ids: Collection[str] = ()) -> Report:
    """All that is known of a run; with `task_ids` the evidence of these tasks only. Raises `NotFound`."""
    record = house.ledger.run(run_id)
    run = show_run(house, Pages(house.ledger.db), run_id, now)
    tasks = house.ledger.tasks(run_id)
    known = {task.task_id for task in tasks}
    for name in task_ids:
        if name not in known:
            raise NotFound(f"run {run_id} has no task {name!r}; `baton runs show {run_id}` lists them")
    chosen = [task for task in tasks if task.task_id in task_ids] if task_ids else tasks[:MAX_TASKS]
    reader = task_reader(house, record)
    return Report(
        run=run,
        record=record,
        tasks=[reader.task(task, house.ledger.attempts(run_id, task.task_id)) for task in chosen],
        left_out=len(tasks) - len(chosen),
        integrations=reader.integrations(),
        supervisors=supervisors_shown(house, record),
        now=now,
    )


def task_reader(house: House, run: RunRecord) -> TaskReader:
    """Reads the evidence of a run; without its repository all but the diffs."""
    try:
        return TaskReader(house, run, open_for_reading(house, run))
    except (BatonError, OSError) as error:
        return TaskReader(house, run, None, f"the repository cannot be read: {error}")


def supervisors_shown(house: House, run: RunRecord) -> list[SupervisorShown]:
    """The supervising sessions with what they cost while the run went on."""
    prices, _ = prices_or_fault(house)
    return [
        SupervisorShown(one, cost(one.during, prices.get(one.model or ""))) for one in supervisors(house, run)
    ]


def render_report(report: Report) -> str:
    """The page as HTML: styles inside, no script, nothing fetched from anywhere."""
    css = source("style.css")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return render(
        "report.html",
        run=report.run,
        tasks=report.tasks,
        left_out=report.left_out,
        integrations=report.integrations,
        supervisors=report.supervisors,
        links=ReportLinks(),
        now=report.now,
        version=__version__,
        css=Markup(css),
        style_hash=digest,
    )
