"""How fast the dashboard's pages are over a large ledger, and whether a page that stays open costs memory.

Times are from a request to the last byte of its answer, without the network: medians and the slowest.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import anyio
import psutil
from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))
from _report import median, parser, report
from large_ledger import make_large_ledger

from baton.engine.house import House
from baton.report.dashboard.app import dashboard
from baton.report.dashboard.keys import Keys
from baton.report.dashboard.live import news, runs_mark

LIMIT_MS = 500.0

MAX_GROWTH = 4 * 2**20
"""Bytes that the dashboard may grow by from its tenth piece of news on."""

PORT = 8123


def timed(browser: TestClient, path: str, times: int) -> tuple[float, float]:
    """Median and longest milliseconds of a page."""
    taken = []
    for _ in range(times + 1):
        began = time.perf_counter()
        answer = browser.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        taken.append((time.perf_counter() - began) * 1000)
    return median(taken[1:]), round(max(taken), 1)


async def followed(house: House, browser: TestClient, run_id: str, pieces: int) -> tuple[int, int]:
    """Resident bytes after the tenth piece of news and after the last, the list being read at each."""
    process, early, seen = psutil.Process(), 0, 0
    async for line in news(house, lambda: runs_mark(house), lambda: False):
        if line.startswith(b"event:"):
            seen += 1
            if seen > pieces:
                break
            await anyio.to_thread.run_sync(browser.get, "/")
        if seen == 10:
            early = process.memory_info().rss
        data = {"command": "make " + "x" * 200, "exitCode": 0}
        house.ledger.append_event(run_id, "worker.command", "task-001", 1, data, durable=False)
    return early, process.memory_info().rss


def main() -> None:
    arguments = parser("How fast the dashboard's pages are over a large ledger.")
    arguments.add_argument("--runs", type=int, default=500)
    arguments.add_argument("--tasks", type=int, default=20_000)
    arguments.add_argument("--events", type=int, default=2_000_000)
    arguments.add_argument("--times", type=int, default=9, help="requests of each page (9)")
    arguments.add_argument("--pieces", type=int, default=60, help="pieces of news (60)")
    arguments.add_argument(
        "--state", type=Path, help="use this folder, and make the ledger where there is none"
    )
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="baton-bench-") as name:
        folder = (options.state or Path(name) / "state").resolve()
        if not (folder / "baton.sqlite3").exists():
            make_large_ledger(folder, options.runs, options.tasks, options.events)
        env = {**os.environ, "BATON_STATE": str(folder), "HOME": name, "CODEX_HOME": f"{name}/.codex"}
        with House.open(env) as house:
            keys = Keys(PORT)
            browser = TestClient(dashboard(house, keys, PORT), base_url=f"http://127.0.0.1:{PORT}")
            browser.get(keys.link)
            at_work = house.ledger.runs(1)[0].run_id
            done = house.ledger.runs(10)[-1].run_id
            pages = {
                "runs": "/",
                "runsLastPage": "/?page=13",
                "runsByState": "/?state=done",
                "runsByVerdict": "/?verdict=failed",
                "runsByWords": "/?text=mend",
                "runAtWork": f"/runs/{at_work}",
                "run": f"/runs/{done}",
                "task": f"/runs/{done}/tasks/task-007",
                "events": f"/runs/{done}/events",
                "eventsOfTask": f"/runs/{done}/events?task=task-007",
                "eventsFirst": f"/runs/{done}/events?after=0",
                "usage": f"/runs/{done}/usage",
                "pools": "/pools",
            }
            counts = [house.ledger.db.read(f"SELECT count(*) FROM {name}")[0][0] for name in TABLES]
            taken = {page: timed(browser, path, options.times) for page, path in pages.items()}
            early, late = anyio.run(followed, house, browser, at_work, options.pieces)
    report(
        {
            **dict(zip(TABLES, counts, strict=True)),
            **{f"{page}Ms": middle for page, (middle, _) in taken.items()},
            "slowestMs": max(longest for _, longest in taken.values()),
            "under500Ms": max(longest for _, longest in taken.values()) < LIMIT_MS,
            "followEarlyBytes": early,
            "followLateBytes": late,
            "followFlat": late - early < MAX_GROWTH,
        },
        as_json=options.json,
    )


TABLES = ("runs", "tasks", "events")


if __name__ == "__main__":
    main()
