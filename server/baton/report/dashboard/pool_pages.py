"""The pages on pools: job files that are worked off."""

from __future__ import annotations

from typing import Any

from baton.contract.errors import InvalidInput
from baton.engine.house import House
from baton.ledger.pool_records import JobState
from baton.pool.status import pool_status
from baton.report.dashboard.pager import pager
from baton.report.dashboard.query import Query
from baton.report.excerpt import excerpt
from baton.report.links import DashboardLinks
from baton.report.simulated import is_simulated

POOLS, JOBS = 40, 100

Shown = tuple[str, dict[str, Any]]


def pools(house: House, query: Query) -> Shown:
    """All pools, the newest first."""
    total = int(house.ledger.db.read("SELECT count(*) FROM pools")[0][0])
    shown = pager(query, total, POOLS)
    records = house.ledger.pools(POOLS, shown.offset)
    return "dashboard/pools.html", {
        "pools": [pool_status(house, record.pool_id) for record in records],
        "pager": shown,
        "live": "pools",
    }


def pool(house: House, query: Query) -> Shown:
    """One pool with a page of its jobs."""
    pool_id, state = query.path["pool_id"], query.text("state")
    if state is not None and state not in tuple(JobState):
        raise InvalidInput(f"state={state[:40]} is none; states are {', '.join(JobState)}")
    status = pool_status(house, pool_id)
    states = [JobState(state)] if state else None
    total = sum(number for one, number in status.counts.items() if state in (None, one))
    shown = pager(query, total, JOBS)
    jobs = house.ledger.pool_jobs(pool_id, states=states, offset=shown.offset, limit=JOBS)
    return "dashboard/pool.html", {
        "status": status,
        "jobs": jobs,
        "pager": shown,
        "query": query,
        "states": [*JobState],
        "live": f"pool/{pool_id}",
    }


def job(house: House, query: Query) -> Shown:
    """One job with its attempts."""
    pool_id, job_id = query.path["pool_id"], query.path["job_id"]
    record = house.ledger.pool_job(pool_id, job_id)
    attempts = house.ledger.pool_attempts(pool_id, job_id)
    outputs = {
        attempt.attempt: excerpt(house.artifacts, attempt.output)
        for attempt in attempts
        if attempt.output is not None
    }
    return "dashboard/job.html", {
        "pool_id": pool_id,
        "job": record,
        "attempts": attempts,
        "outputs": outputs,
        "simulated": [attempt.attempt for attempt in attempts if is_simulated(attempt.route)],
        "links": DashboardLinks(),
        "live": f"pool/{pool_id}",
    }
