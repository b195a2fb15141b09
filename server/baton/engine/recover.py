"""What the next start of anything does about runs whose runner died: end, capture, undo or finish, mark."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Collection
from pathlib import Path

from baton.contract.errors import BatonError
from baton.contract.evidence import AttemptResult, Evidence, ScopeEvidence, TaskOutcome
from baton.contract.states import Enforcement, Integration, RunState, TaskState, Verdict
from baton.engine.evidence import shown, shown_changes, violations_of
from baton.engine.house import House
from baton.engine.life import NOT_RECOVERED, resting_state
from baton.ledger.locks import FileLock
from baton.ledger.records import AttemptRecord, IntegrationRecord, JsonObject, NewEvent, RunRecord
from baton.policy.load import recorded_policy
from baton.process.environment import RUN_MARKER
from baton.process.tree import ProcessId, boot_id, end_processes, end_tree, processes_with_marker
from baton.workspace.apply import is_finished, recover
from baton.workspace.git import Git
from baton.workspace.limits import Limits
from baton.workspace.locate import locate
from baton.workspace.lock import RepositoryLock
from baton.workspace.pool import WorktreePool, free
from baton.workspace.repository import PrivateRepository
from baton.workspace.scope import read_scope

log = logging.getLogger(__name__)

LOCK_SECONDS = 60.0

ROUNDS = 20
"""How often a run's processes are looked for: one may start another while it is ended."""


def recover_all(house: House, failed: dict[str, str] | None = None) -> list[str]:
    """Recover every run that no living runner has; their ids. Cheap when there is none.

    A run that cannot be recovered now (its workspace is gone, say) stays as it is and is tried again by the
    next start; everything it left is still where it was. `failed` is given its note, which says why: the
    ledger cannot take one on a full disk.
    """
    done = []
    for run_id in _left_by_runners(house):
        lock = FileLock(house.state.run_lock(run_id))
        if not lock.try_acquire():
            continue
        try:
            recover_run(house, run_id)
            done.append(run_id)
        except BatonError as error:
            log.warning("run %s cannot be recovered now: %s", run_id, error.message)
            note = NOT_RECOVERED + error.message
            if failed is not None:
                failed[run_id] = note
            with contextlib.suppress(BatonError):
                house.ledger.update_run(run_id, note=note)
        finally:
            lock.release()
    return done


def _left_by_runners(house: House) -> list[str]:
    """Runs that are not at rest, and those that are but whose processes nobody has seen end."""
    unfinished = [run.run_id for run in house.ledger.unfinished_runs()]
    open_ones = [process.run_id for process in house.ledger.processes() if process.run_id is not None]
    return list(dict.fromkeys([*unfinished, *open_ones]))


def recover_run(house: House, run_id: str, *, give_up: bool = False) -> None:
    """Bring a run that a dead runner left to `interrupted`. The caller holds the run lock.

    Processes are ended first, then an unfinished apply is finished or undone, then uncaptured work is
    captured; only then is anything marked. Safe to repeat and to interrupt at any point. Raises `BatonError`
    when a part is impossible now (the workspace is gone, say); with `give_up` the run is marked all the same,
    with what could not be done in its note, and what it left stays where it is.
    """
    run = house.ledger.run(run_id)
    if run.state.at_rest and not house.ledger.processes(run_id):
        return
    _end_processes(house, run_id)
    house.ledger.drop_tickets(run_id)
    if run.state.at_rest:  # its runner died over tidying up
        shutil.rmtree(house.state.scratch / run_id, ignore_errors=True)
        return
    why = "its runner died"
    try:
        _take_in(house, run)
    except BatonError as error:
        if not give_up:
            raise
        why = f"given up: {error.message}"
    shutil.rmtree(house.state.scratch / run_id, ignore_errors=True)
    tasks = house.ledger.tasks(run_id)
    state, integration = resting_state(tasks, None)
    if all(task.state.at_rest for task in tasks) and state is RunState.DONE:
        # It died when there was nothing left to do.
        house.ledger.update_run(
            run_id, state=state, integration=integration, note=None, event=NewEvent(kind=f"run.{state}")
        )
    close_interrupted(house, run_id, why)


def _take_in(house: House, run: RunRecord) -> None:
    git = Git.find()
    site = locate(Path(run.workspace), git)
    policy = recorded_policy(run.policy)
    repo = PrivateRepository.open(house.state, site, Limits(kept_bytes=policy.limits.kept_bytes), git)
    repo.remove_stale_locks(run.run_id)
    _recover_applies(house, run.run_id, repo)
    capture_left(house, run.run_id, repo)


def close_interrupted(house: House, run_id: str, why: str) -> None:
    """Mark a run and its unfinished tasks as interrupted, with the reason.

    What was asked of a run that rests already could not be done: it is answered with the reason.
    """
    run = house.ledger.run(run_id)
    with house.ledger.transaction():
        for task in house.ledger.tasks(run_id):
            if not task.state.at_rest:
                house.ledger.update_task(
                    run_id,
                    task.task_id,
                    state=TaskState.INTERRUPTED,
                    verdict=Verdict.INTERRUPTED,
                    reasons=[why],
                )
        if not run.state.at_rest:
            house.ledger.update_run(
                run_id,
                state=RunState.INTERRUPTED,
                note=why,
                event=NewEvent(kind="run.interrupted", data={"why": why}),
            )
        answer: JsonObject = {"state": house.ledger.run(run_id).state.value}
        if run.state.at_rest:
            answer["error"] = why
        house.ledger.answer_open_commands(run_id, answer)


def _end_processes(house: House, run_id: str) -> None:
    recorded = house.ledger.processes(run_id)
    boot = boot_id()
    end_left_processes(
        run_id,
        [
            ProcessId(process.pid, process.start_time)
            for process in recorded
            if process.boot_id == boot and process.kind != "runner"
        ],
    )
    for process in recorded:
        house.ledger.end_process(process.process_id, "ended by recovery")


def end_left_processes(marker: str, guards: Collection[ProcessId]) -> None:
    """End what is left of a run or pool: first the trees of its guards, then whoever carries its mark.

    A guard that is asked to ends its tree; killed alone, it would leave it. What cannot be ended is logged.
    """
    for process in guards:
        with contextlib.suppress(ValueError):  # one of ours: a later program under an old number
            end_tree(process)
    left: Collection[ProcessId] = ()
    for _ in range(ROUNDS):
        found = processes_with_marker(RUN_MARKER, marker)
        if not found:
            break
        left = end_processes(found)
    if left:
        log.warning("%s: processes that could not be ended: %s", marker, [process.pid for process in left])


def _recover_applies(house: House, run_id: str, repo: PrivateRepository) -> None:
    for record in house.ledger.integrations(run_id):
        if record.step != "applying" or record.journal is None:
            continue
        journal = Path(record.journal)
        with RepositoryLock(repo.site, timeout=LOCK_SECONDS):
            # Somebody else may have recovered it before us: the journal says how it ended.
            notes = [kept.message for kept in recover(journal).kept]
            finished = is_finished(journal)
        with house.ledger.transaction():
            house.ledger.update_integration(
                run_id,
                record.number,
                step="applied" if finished else "undone",
                detail="; ".join(notes) or None,
                event=NewEvent(kind="integration.recovered", data={"finished": finished, "notes": [*notes]}),
            )
            if finished:
                _settle_applied(house, record)


def _settle_applied(house: House, record: IntegrationRecord) -> None:
    kept_out = {conflict.partition(":")[0] for conflict in record.conflicts}
    for name in record.task_ids:
        task = house.ledger.task(record.run_id, name)
        if name not in kept_out and task.result is not None:
            changed = bool(task.result.evidence.changes)
            outcome = TaskOutcome(integration=Integration.APPLIED if changed else Integration.NOTHING)
            house.ledger.update_task(record.run_id, name, outcome=outcome)


def capture_left(house: House, run_id: str, repo: PrivateRepository) -> None:
    """Capture the work that a run left in its worktrees, then give these back.

    A dead runner left it there, or one that could not capture it, because the workspace was gone, say.
    """
    for worktree, owner in list(WorktreePool(repo, house.state).reserved()):
        owning_run, _, rest = owner.partition("/")
        task_id, _, number = rest.partition("/")
        if owning_run != run_id or not number.isdigit():
            continue
        task = house.ledger.task(run_id, task_id)
        record = house.ledger.attempt(run_id, task_id, int(number))
        if record.commit is None and record.base_commit is not None:
            ref = f"refs/runs/{run_id}/tasks/{task_id}/{number}"
            aside = house.state.root / "aside" / run_id / f"{task_id}-{number}"
            capture = repo.capture(worktree, record.base_commit, ref, aside)
            evidence = Evidence(
                base=record.base_commit,
                tree=capture.tree,
                commit=capture.commit,
                changes=shown_changes(capture.changes),
                ignored=shown(capture.ignored),
                nested=shown(capture.nested),
                unsupported=shown(capture.unsupported),
                scope=ScopeEvidence(
                    enforcement=Enforcement.DETECTED,
                    why_detected="captured by recovery after its runner died",
                    violations=violations_of(capture, read_scope(task.contract)),
                ),
                aside=None if capture.aside is None else str(capture.aside),
            )
            result = _cut_result(record, evidence)
            known: dict[str, object] = {"step": "judged", "result": result}
            if "usage" in record.data and "failure" not in record.data:
                # The turn had come to its own end: only checks and verdict are missing.
                known = {"step": "captured", "data": {**record.data, "evidence": evidence.wire()}}
            with house.ledger.transaction():
                house.ledger.update_attempt(
                    run_id,
                    task_id,
                    record.attempt,
                    commit=capture.commit,
                    event=NewEvent(kind="attempt.recovered", task_id=task_id, attempt=record.attempt),
                    **known,
                )
                house.ledger.update_task(run_id, task_id, kept=ref, result=result)
        free(worktree)


def _cut_result(record: AttemptRecord, evidence: Evidence) -> AttemptResult:
    return AttemptResult(
        attempt=record.attempt,
        thread_id=record.thread_id,
        verdict=Verdict.INTERRUPTED,
        reasons=["its runner died"],
        evidence=evidence,
        route=record.route,
    )
