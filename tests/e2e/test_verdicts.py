"""The verdict, end to end: what workers do, what Baton concludes, and what the workspace then holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from baton.contract.errors import WrongState
from baton.contract.evidence import AttemptResult, ChangeShown, CheckStatus
from baton.contract.states import Enforcement, RunState, TaskState
from baton.ledger.records import TaskRecord
from baton.simulate.workers import IDLE_ANSWER
from e2e.rows import ROWS, SEED, folder_of, placed, task_of
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex


@dataclass(frozen=True)
class Table:
    """All rows of the table, run as the tasks of one run."""

    sim: Sim
    workspace: Workspace
    run_id: str
    before: dict[str, tuple[int, bytes]]
    repository: dict[str, bytes]

    def task(self, name: str) -> TaskRecord:
        return self.sim.task(self.run_id, name)

    def result(self, name: str) -> AttemptResult:
        return self.sim.result(self.run_id, name)


@pytest.fixture(scope="module")
def table(sim: Sim) -> Table:
    files: dict[str, str | bytes] = {".gitignore": "*.log\n"}
    for name, row in ROWS.items():
        files[f"{folder_of(name)}/seed.txt"] = SEED
        files |= {f"{folder_of(name)}/{path}": content for path, content in row.files.items()}
    workspace = sim.workspace("table", files)
    workspace.write("notes.txt", "mine, untracked\n")
    before, repository = workspace.contents(), workspace.repository()
    tasks = []
    for name, row in ROWS.items():
        objective = sim.script(name, *(placed(step, folder_of(name)) for step in row.steps))
        tasks.append(task_of(name, row, objective))
    with sim.policy("[concurrency]\nmax_parallel = 6\n"):
        answer = sim.delegate({"workspace": str(workspace.path), "tasks": tasks, "waitSeconds": 280})
    assert answer["state"] == RunState.HELD, answer
    return Table(sim, workspace, answer["runId"], before, repository)


@pytest.mark.parametrize("name", ROWS)
def test_each_worker_gets_the_verdict_it_earned(table: Table, name: str) -> None:
    row, task, result = ROWS[name], table.task(name), table.result(name)
    assert (task.verdict, task.state) == (row.verdict, TaskState.DONE), task.reasons
    assert sorted(_told(change, folder_of(name)) for change in result.evidence.changes) == sorted(row.changes)
    assert task.outcome.integration == row.integration
    failure = result.evidence.turn_failure
    assert (failure.failure_class if failure else None) == row.failure


def test_the_workspace_holds_exactly_what_was_verified(table: Table) -> None:
    expected = dict(table.before)
    for name, row in ROWS.items():
        for path, state in row.after.items():
            full = f"{folder_of(name)}/{path}"
            if state is None:
                del expected[full]
            else:
                expected[full] = state
    found = table.workspace.contents()
    assert found.keys() == expected.keys()
    assert {path: state for path, state in found.items() if expected[path] != state} == {}


def test_the_repository_is_as_it_was(table: Table) -> None:
    assert table.workspace.repository() == table.repository


def test_every_change_that_did_not_land_is_kept_and_can_be_fetched(table: Table) -> None:
    held = [name for name, row in ROWS.items() if "added half.txt" in row.changes]
    assert len(held) > 8
    for name in held:
        assert table.sim.kept(table.run_id, f"{folder_of(name)}/half.txt", name) == b"half\n"


def test_every_verdict_but_verified_says_why(table: Table) -> None:
    said = {name: "; ".join(table.task(name).reasons) for name in ROWS}
    for name, part in {
        "false-pass": "check failed with exit status 1: grep seed",
        "blocked": "Which colour?",
        "says-failed": "It is too hard.",
        "empty-diff": "a change is required and the tree has none",
        "malformed": "the final report is missing or malformed",
        "no-check": "no check was asked for",
        "missing-program": "its program is missing: no-such-program-at-all --now",
        "out-of-pattern": "out of scope: rows/out-of-pattern/src/x.txt (not in allowedFiles)",
        "new-forbidden": "out of scope: rows/new-forbidden/new.key (forbidden by *.key)",
        "leaving-link": "out of scope: rows/leaving-link/link (a link that leaves the workspace)",
        "auth": "the turn failed (auth)",
    }.items():
        assert part in said[name]


def test_claim_and_observation_stand_beside_each_other_and_differ_visibly(table: Table) -> None:
    found = {name: table.result(name).evidence.discrepancies for name in ROWS}
    assert found["honest"] == found["mode"] == found["rename"] == found["link-inside"] == []
    assert found["wrong-list"] == [
        "changed but not reported: rows/wrong-list/real.txt",
        "reported as changed but not changed: rows/wrong-list/imagined.txt",
    ]
    assert "claims PASS, but nothing changed" in found["empty-diff"]
    assert (
        f"claims PASS, but the check fails: grep seed {folder_of('false-pass')}/seed.txt"
        in found["false-pass"]
    )


def test_a_report_that_is_none_is_kept_as_it_was(table: Table) -> None:
    malformed = {name: table.result(name) for name in ("ready", "malformed", "half-report")}
    assert {name: result.claim for name, result in malformed.items()} == dict.fromkeys(malformed)
    assert malformed["ready"].malformed_report == IDLE_ANSWER
    assert malformed["malformed"].malformed_report == "All done, have a look!"
    assert any(
        "the final report cannot be read" in note for note in malformed["half-report"].evidence.notices
    )


def test_what_git_does_not_take_is_listed_and_kept_apart(table: Table) -> None:
    for name in ("ignored", "only-ignored"):
        evidence = table.result(name).evidence
        assert evidence.ignored == [f"{folder_of(name)}/a.log"]
        assert evidence.aside is not None
        assert (Path(evidence.aside) / folder_of(name) / "a.log").read_text() == "log\n"
    for name in ("nested", "only-nested"):
        evidence = table.result(name).evidence
        assert [path.rstrip("/") for path in evidence.nested] == [f"{folder_of(name)}/inner"]
        assert evidence.aside is not None
        assert (Path(evidence.aside) / folder_of(name) / "inner" / "i").read_text() == "i\n"
        assert any("nested repository is kept apart" in note for note in evidence.notices)


def test_what_can_only_be_detected_says_so_and_what_is_prevented_too(table: Table) -> None:
    scopes = {name: table.result(name).evidence.scope for name in ROWS}
    for name in ("honest", "escaping", "forbidden", "leaving-link"):
        assert scopes[name].enforcement is Enforcement.PREVENTED, scopes[name].why_detected
    for name in ("out-of-pattern", "renamed-out-of-pattern", "new-forbidden"):
        assert scopes[name].enforcement is Enforcement.DETECTED
        assert scopes[name].why_detected
    assert [entry.path for entry in scopes["renamed-out-of-pattern"].violations] == [
        f"{folder_of('renamed-out-of-pattern')}/src/a.txt"
    ]


def test_a_result_out_of_scope_is_never_applied_not_even_by_name(table: Table) -> None:
    with pytest.raises(WrongState, match="out of its scope"):
        table.sim.control(table.run_id, "integrate", ["out-of-pattern"])
    assert not (table.workspace.path / folder_of("out-of-pattern") / "src" / "x.txt").exists()


def test_a_worker_cannot_write_where_another_works(table: Table) -> None:
    out = table.sim.model.wait_for(lambda request: "<escaping>" in request.text and request.number == 2)
    assert "out.txt: Read-only file system" in "".join(output.text for output in out.outputs)


def test_checks_ran_on_the_captured_tree_and_keep_their_output(table: Table) -> None:
    for name in ("honest", "false-pass", "check-writes"):
        result = table.result(name)
        assert {check.tree for check in result.evidence.checks} == {result.evidence.tree}
        assert all(check.output is not None and check.sandboxed for check in result.evidence.checks)
    missing = table.result("missing-program").evidence.checks
    assert [check.status for check in missing] == [CheckStatus.PASSED, CheckStatus.MISSING]


def test_the_route_is_attested_and_the_tokens_are_those_that_were_reported(table: Table) -> None:
    model = table.sim.model
    for name in ("honest", "false-pass", "overflow", "auth"):
        attempts = table.sim.attempts(table.run_id, name)
        result = table.result(name)
        assert result.thread_id is not None and result.route is not None
        requests = model.requests_of(result.thread_id)
        assert {request.model for request in requests} == {result.route.model}
        assert {request.effort for request in requests} == {result.route.effort}
        assert not result.route.deviates
        answers = model.answers_of(result.thread_id)
        assert result.usage.total_tokens == answers * model.usage.total_tokens
        assert result.usage.cached_input_tokens == answers * model.usage.cached_tokens
        assert sum(attempt.result.usage.output_tokens or 0 for attempt in attempts if attempt.result) == (
            answers * model.usage.output_tokens
        )
    assert table.result("fails-at-once").usage.total_tokens is None


def test_no_worker_was_asked_more_than_its_script_says(table: Table) -> None:
    assert table.sim.model.surprises == ()


def _told(change: ChangeShown, folder: str) -> str:
    path = change.path.removeprefix(f"{folder}/")
    if change.old_path is not None:
        path = f"{change.old_path.removeprefix(folder + '/')} → {path}"
    return f"{change.kind} {path}" + (f" {change.mode}" if change.mode else "")
