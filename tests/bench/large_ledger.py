"""A ledger as years of use leave it: many runs, tasks, attempts and events, as the ledger stores them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from baton.contract.evidence import (
    AttemptResult,
    ChangeShown,
    CheckResult,
    CheckStatus,
    Evidence,
    Route,
    ScopeEvidence,
    Usage,
)
from baton.contract.states import Enforcement, RunState, TaskState, Verdict
from baton.contract.task import Task
from baton.ledger.records import AttemptRecord, RunRecord, TaskRecord
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger
from baton.ledger.tables import ATTEMPTS, RUNS, TASKS

MODELS = ("gpt-5.6-luna", "gpt-5.6-terra", "gpt-5.6-sol")

AT_WORK = 3
"""Runs that are not at rest: the newest."""


def make_large_ledger(
    folder: Path, runs: int = 500, tasks: int = 20_000, events: int = 2_000_000
) -> StateFolder:
    """Write one into `folder`; two thirds of the tasks of the runs at work are not done."""
    state = StateFolder.find({"BATON_STATE": str(folder), "HOME": str(folder)})
    each, per_task = tasks // runs, events // tasks
    with Ledger.open(state) as ledger:
        for number in range(runs):
            begun = time.time() - (runs - number) * 3600.0
            at_work = number >= runs - AT_WORK
            with ledger.db.transaction(durable=False) as db:
                _write_run(db, f"r{number:08d}", begun, each, at_work=at_work)
                db.executemany(
                    "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)",
                    _events(f"r{number:08d}", begun, each, per_task),
                )
        ledger.maintain(60.0)
    return state


def _write_run(db: sqlite3.Connection, run_id: str, begun: float, tasks: int, *, at_work: bool) -> None:
    state = RunState.RUNNING if at_work else RunState.DONE
    run = RunRecord(
        run_id=run_id,
        workspace=f"/home/person/project-{int(run_id[1:]) % 7}",
        repo_key=f"key{int(run_id[1:]) % 7}",
        state=state,
        session={"threadId": f"thread-{run_id}", "model": "gpt-6.2-sol"},
        policy={"text": "p" * 6000},
        options={"routes": {}},
        created_at=begun,
        updated_at=begun + 900,
        ended_at=None if at_work else begun + 900,
    )
    RUNS.insert(db, run)
    for position in range(tasks):
        done = not at_work or position % 3 == 0
        result = _result(position) if done else None
        TASKS.insert(
            db,
            TaskRecord(
                run_id=run_id,
                task_id=f"task-{position:03d}",
                position=position,
                state=TaskState.DONE if done else TaskState.WORKING,
                contract=Task(objective="Mend what is broken here. " * 20, allowed_files=["src/"]),
                verdict=None if result is None else result.verdict,
                reasons=[] if result is None else result.reasons,
                result=result,
                created_at=begun,
                updated_at=begun,
                ended_at=begun + 600 if done else None,
            ),
        )
        ATTEMPTS.insert(
            db,
            AttemptRecord(
                run_id=run_id,
                task_id=f"task-{position:03d}",
                attempt=1,
                step="judged" if done else "working",
                route=_route(position),
                result=result,
                started_at=begun + 1,
                updated_at=begun + 2,
            ),
        )


def _route(position: int) -> Route:
    model = MODELS[position % len(MODELS)]
    return Route(role="luna-worker", tier="luna", asked_model=model, model=model, effort="medium")


def _result(position: int) -> AttemptResult:
    verified = position % 4 != 0
    check = CheckResult(
        command="python3 -m pytest -q",
        argv=["python3", "-m", "pytest", "-q"],
        tree="4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        status=CheckStatus.PASSED if verified else CheckStatus.FAILED,
        seconds=3.5,
        sandboxed=True,
        tail="=" * 600,
    )
    return AttemptResult(
        attempt=1,
        verdict=Verdict.VERIFIED if verified else Verdict.FAILED,
        reasons=["one check passed" if verified else "a check failed"],
        evidence=Evidence(
            base="b",
            scope=ScopeEvidence(enforcement=Enforcement.PREVENTED),
            checks=[check],
            changes=[ChangeShown(path=f"src/module_{n}.py", kind="modified") for n in range(12)],
        ),
        route=_route(position),
        usage=Usage(
            input_tokens=9000, cached_input_tokens=4000, output_tokens=1000, reasoning_output_tokens=300,
            total_tokens=10_000,
        ),
        seconds=300.0,
    )  # fmt: skip


def _events(run_id: str, begun: float, tasks: int, per_task: int) -> Iterator[tuple[object, ...]]:
    seq = 0
    for step in range(per_task):
        for position in range(tasks):
            seq += 1
            data = f'{{"command":"sed -n 1,200p src/module_{step}.py | head","exitCode":0}}'
            yield run_id, seq, begun + seq / 10, "worker.command", f"task-{position:03d}", 1, data
