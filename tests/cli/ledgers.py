"""Ledgers as runs leave them, written by the ledger itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baton.contract.evidence import (
    AttemptResult,
    CheckResult,
    CheckStatus,
    Evidence,
    Route,
    ScopeEvidence,
    Usage,
    Violation,
)
from baton.contract.states import Enforcement, RunState, TaskState, Verdict
from baton.contract.task import Task
from baton.ledger.records import AttemptRecord, NewEvent, RunRecord, TaskRecord
from baton.ledger.store import Ledger

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m\r\x9b1A\u202edrow\u2066 end"
"""Sets a title, clears the screen, colours, goes back to the first column and up, turns the direction."""

MODEL, EFFORT = "gpt-5.6-luna", "medium"


def add_run(
    ledger: Ledger,
    run_id: str,
    task_ids: Sequence[str] = ("one",),
    *,
    workspace: str = "/home/person/project",
    objective: str = "Count every item.",
    label: str | None = None,
    depends_on: Sequence[str] = (),
) -> None:
    """A run as it is when it has just been admitted."""
    run = RunRecord(
        run_id=run_id,
        workspace=workspace,
        repo_key="key",
        session={"threadId": "thread-of-the-session", "model": "gpt-6.2-sol"},
    )
    tasks = [
        TaskRecord(
            run_id=run_id,
            task_id=task_id,
            position=position,
            label=label,
            contract=Task(objective=objective, allowed_files=["src/"]),
            depends_on=list(depends_on),
        )
        for position, task_id in enumerate(task_ids)
    ]
    event = NewEvent(kind="run.admitted", data={"tasks": [*task_ids], "notes": []})
    ledger.create_run(run, tasks, event=event)


def start(ledger: Ledger, run_id: str, task_id: str, command: str = "pytest -q", attempt: int = 1) -> None:
    """A worker has begun, and run a command that failed."""
    if ledger.run(run_id).state is not RunState.RUNNING:
        ledger.update_run(run_id, state=RunState.RUNNING, event=NewEvent(kind="run.running"))
    ledger.update_task(run_id, task_id, state=TaskState.WORKING)
    route = Route(asked_model=MODEL, asked_effort=EFFORT, model=MODEL, effort=EFFORT)
    ledger.start_attempt(
        AttemptRecord(run_id=run_id, task_id=task_id, attempt=attempt, step="working", route=route)
    )
    ledger.append_event(
        run_id, "worker.command", task_id, attempt, {"command": command, "exitCode": 1}, durable=False
    )


def finish(
    ledger: Ledger, run_id: str, task_id: str, verdict: Verdict = Verdict.VERIFIED, **more: Any
) -> None:
    """The attempt has been judged: one check, and for a failure one violation too."""
    done = result(verdict, **more)
    ledger.update_attempt(run_id, task_id, 1, step="judged", result=done)
    ledger.update_task(
        run_id,
        task_id,
        state=TaskState.DONE,
        verdict=verdict,
        reasons=done.reasons,
        result=done,
        event=NewEvent(kind="task.done", task_id=task_id, data={"verdict": verdict.value}),
    )


def end(ledger: Ledger, run_id: str, state: RunState = RunState.DONE) -> None:
    ledger.update_run(run_id, state=state, event=NewEvent(kind=f"run.{state}"))


def result(
    verdict: Verdict = Verdict.VERIFIED, tokens: int | None = 12_345, reason: str = "one check passed"
) -> AttemptResult:
    failed = verdict is not Verdict.VERIFIED
    check = CheckResult(
        command="python3 check.py",
        argv=["python3", "check.py"],
        tree="4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        status=CheckStatus.FAILED if failed else CheckStatus.PASSED,
        seconds=1.5,
        sandboxed=True,
    )
    violations = [Violation(path="docs/x", rule="not in allowedFiles")] if failed else []
    return AttemptResult(
        attempt=1,
        verdict=verdict,
        reasons=[reason],
        evidence=Evidence(
            base="b",
            scope=ScopeEvidence(enforcement=Enforcement.PREVENTED, violations=violations),
            checks=[check],
        ),
        route=Route(asked_model=MODEL, model=MODEL, effort=EFFORT),
        usage=Usage(total_tokens=tokens),
    )
