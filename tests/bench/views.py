"""How fast the views are over a large ledger, and whether watching it costs memory.

The programs are started as a person starts them; times are medians of whole processes, start to end.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent))
from _report import median, parser, report
from large_ledger import make_large_ledger

from baton.ledger.database import Database
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger

LIMIT_MS = 300.0

MAX_GROWTH = 4 * 2**20
"""Bytes that a watcher may grow by from its tenth picture on."""


def timed(command: list[str], env: dict[str, str], times: int) -> float:
    """Median milliseconds of a `baton` command."""
    taken = []
    for _ in range(times + 1):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "baton.cli.main", *command], env=env, check=True, capture_output=True
        )
        taken.append((time.perf_counter() - began) * 1000)
    return median(taken[1:])


def watched(state: StateFolder, env: dict[str, str], pictures: int) -> tuple[int, int]:
    """Resident bytes of a watcher after its tenth picture and after its last, while events keep coming."""
    command = [sys.executable, "-m", "baton.cli.main", "activity", "--watch", "--json"]
    watcher = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
    assert watcher.stdout is not None
    process, early, seen = psutil.Process(watcher.pid), 0, 0
    with Ledger.open(state) as ledger:
        newest = ledger.runs(1)[0].run_id
        while seen < pictures:
            for _ in range(20):
                data = {"command": "make " + "x" * 200, "exitCode": 0}
                ledger.append_event(newest, "worker.command", "task-001", 1, data, durable=False)
            while select.select([watcher.stdout], [], [], 0.25)[0]:
                piece = os.read(watcher.stdout.fileno(), 1 << 20)
                if not piece:
                    raise SystemExit("the watcher ended")
                seen += piece.count(b"\n")
            if early == 0 and seen >= 10:
                early = process.memory_info().rss
    late = process.memory_info().rss
    watcher.send_signal(signal.SIGINT)
    watcher.communicate(timeout=60)
    return early, late


def main() -> None:
    arguments = parser("How fast the views are over a large ledger.")
    arguments.add_argument("--runs", type=int, default=500)
    arguments.add_argument("--tasks", type=int, default=20_000)
    arguments.add_argument("--events", type=int, default=2_000_000)
    arguments.add_argument("--times", type=int, default=9, help="starts of each view (9)")
    arguments.add_argument("--pictures", type=int, default=60, help="pictures of the watcher (60)")
    arguments.add_argument(
        "--state", type=Path, help="use this folder, and make the ledger where there is none"
    )
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="baton-bench-") as name:
        folder = (options.state or Path(name) / "state").resolve()
        env = {**os.environ, "BATON_STATE": str(folder), "HOME": name, "CODEX_HOME": f"{name}/.codex"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env["PYTHONPYCACHEPREFIX"] = f"{name}/compiled"
        env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        if not (folder / "baton.sqlite3").exists():
            make_large_ledger(folder, options.runs, options.tasks, options.events)
        state = StateFolder.find(env)
        with Database(state) as db:
            counts = [db.read(f"SELECT count(*) FROM {table}")[0][0] for table in ("runs", "tasks", "events")]
        newest = f"r{options.runs - 1:08d}"
        views = {
            "activityMs": ["activity"],
            "activityJsonMs": ["activity", "--json"],
            "activityOneRunMs": ["activity", newest],
            "runsListMs": ["runs", "list"],
            "runsListByLabelMs": ["runs", "list", "--label", "mend"],
            "usageMs": ["usage", "--days", "365"],
        }
        taken = {key: timed(command, env, options.times) for key, command in views.items()}
        early, late = watched(state, env, options.pictures)
    report(
        {
            "runs": counts[0],
            "tasks": counts[1],
            "events": counts[2],
            **taken,
            "activityUnder300Ms": max(taken["activityMs"], taken["activityJsonMs"]) < LIMIT_MS,
            "watchEarlyBytes": early,
            "watchLateBytes": late,
            "watchFlat": late - early < MAX_GROWTH,
        },
        as_json=options.json,
    )


if __name__ == "__main__":
    main()
