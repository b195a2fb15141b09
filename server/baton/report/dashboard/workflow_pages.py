"""The pages on workflows: who does what, and every try at a step in the order in which it happened."""

from __future__ import annotations

from typing import Any

from baton.engine.house import House
from baton.report.dashboard.pager import pager
from baton.report.dashboard.query import Query
from baton.report.excerpt import Excerpt, shortened
from baton.workflow.history import Job, used
from baton.workflow.terms import Bound

WORKFLOWS, STEPS = 40, 100

MAX_TEXT = 20_000
"""Characters shown of one text of a step."""

Shown = tuple[str, dict[str, Any]]


def workflows(house: House, query: Query) -> Shown:
    """All of them, the newest first."""
    total = int(house.ledger.db.read("SELECT count(*) FROM workflows")[0][0])
    shown = pager(query, total, WORKFLOWS)
    records = house.ledger.workflows(WORKFLOWS, shown.offset)
    return "dashboard/workflows.html", {"workflows": records, "pager": shown, "live": "workflows"}


def workflow(house: House, query: Query) -> Shown:
    """One of them with a page of its steps. Raises `NotFound`."""
    job = Job.read(house, query.path["workflow_id"])
    steps = list(reversed(job.steps))
    shown = pager(query, len(steps), STEPS)
    return "dashboard/workflow.html", {
        "record": job.workflow,
        "terms": job.terms,
        "bindings": {step.value: bound.shown for step, bound in job.terms.bindings.items()},
        "used": used(house, job),
        "steps": [
            (one, Bound.model_validate(one.binding).shown, _text(one.product), _text(one.output))
            for one in steps[shown.offset : shown.offset + STEPS]
        ],
        "pager": shown,
        "live": f"workflow/{job.id}",
    }


def _text(text: str | None) -> Excerpt | None:
    return None if text is None else shortened(text, MAX_TEXT)
