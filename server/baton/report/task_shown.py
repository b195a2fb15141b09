"""One task as evidence: what its worker claims beside what Baton observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from baton.contract.claim import Claim
from baton.contract.errors import BatonError
from baton.contract.evidence import AttemptResult, CheckResult
from baton.engine.house import House
from baton.ledger.records import ArtifactRef, AttemptRecord, IntegrationRecord, RunRecord, TaskRecord
from baton.report.excerpt import Excerpt, excerpt, shortened
from baton.report.simulated import is_simulated
from baton.report.unified import Diff, read_diff
from baton.workspace.repository import PrivateRepository

MAX_OBJECTIVE = 20_000
"""Characters."""

MAX_ITEMS = 200
"""Entries shown of one list."""

DIFF_LINES = 1_500


@dataclass(frozen=True)
class FileRow:
    """One path that the worker names, or that the captured tree shows as changed."""

    path: str
    kind: str | None
    """How it changed; None when it did not."""
    claimed: bool
    old_path: str | None = None
    mode: str | None = None

    @property
    def agrees(self) -> bool:
        return self.claimed and self.kind is not None


@dataclass(frozen=True)
class CheckRow:
    """One check as it was run by Baton, and whether the worker says that it ran it."""

    check: CheckResult
    claimed: bool
    output: Excerpt | None


@dataclass(frozen=True)
class AttemptShown:
    """One attempt with the words that went in and came out."""

    record: AttemptRecord
    brief: Excerpt | None
    report: Excerpt | None

    @property
    def result(self) -> AttemptResult | None:
        return self.record.result


@dataclass(frozen=True)
class TaskShown:
    """Everything that is shown of one task."""

    record: TaskRecord
    objective: Excerpt
    attempts: Sequence[AttemptShown]
    shown: AttemptShown | None
    """The attempt whose evidence is shown: the one that counts, or the last."""
    files: Sequence[FileRow] = ()
    checks: Sequence[CheckRow] = ()
    claimed_checks: Sequence[str] = ()
    """Commands the worker says it ran and that are none of the task's checks."""
    diff: Diff | None = None
    no_diff: str | None = None
    """Why there is none."""
    fetch: str | None = None
    """The git command that fetches what is kept."""
    simulated: bool = False

    @property
    def result(self) -> AttemptResult | None:
        return self.shown.result if self.shown is not None else None

    @property
    def claim(self) -> Claim | None:
        return self.result.claim if self.result is not None else None


@dataclass(frozen=True)
class IntegrationShown:
    """One try to bring results into the workspace."""

    record: IntegrationRecord
    checks: Sequence[CheckRow]


@dataclass
class TaskReader:
    """Reads the evidence of a run's tasks."""

    house: House
    run: RunRecord
    repo: PrivateRepository | None
    no_repo: str | None = None
    """Why there is no repository to read diffs from."""
    refs: dict[str, list[ArtifactRef]] = field(default_factory=dict)

    def task(
        self,
        task: TaskRecord,
        attempts: Sequence[AttemptRecord],
        *,
        number: int | None = None,
        diff_lines: int = DIFF_LINES,
    ) -> TaskShown:
        """The task with the evidence of attempt `number`; of the one that counts when None."""
        shown = [self._attempt(attempt) for attempt in attempts]
        chosen = _chosen(task, shown, number)
        made = TaskShown(
            record=task,
            objective=shortened(task.contract.objective, MAX_OBJECTIVE),
            attempts=shown,
            shown=chosen,
            fetch=None if task.kept is None or self.repo is None else self.repo.fetch_command(task.kept),
            simulated=any(is_simulated(one.record.route) for one in shown),
        )
        if chosen is None or chosen.result is None:
            return made
        result = chosen.result
        claimed = set(result.claim.checks_run) if result.claim is not None else set()
        diff, no_diff = self.diff(chosen.record, 0, diff_lines)
        commands = {check.command for check in result.evidence.checks}
        return TaskShown(
            **{
                **vars(made),
                "files": file_rows(result),
                "checks": [self._check(check, claimed) for check in result.evidence.checks],
                "claimed_checks": [command for command in sorted(claimed) if command not in commands],
                "diff": diff,
                "no_diff": no_diff,
            }
        )

    def integrations(self) -> list[IntegrationShown]:
        """The tries to integrate, in their order."""
        records = self.house.ledger.integrations(self.run.run_id)
        return [
            IntegrationShown(record, [self._check(check, set()) for check in record.checks])
            for record in records
        ]

    def diff(self, record: AttemptRecord, first: int, limit: int) -> tuple[Diff | None, str | None]:
        """Lines of an attempt's diff; or why there are none."""
        if record.commit is None or record.base_commit is None:
            return None, "nothing was captured"
        if record.result is not None and not record.result.evidence.changes:
            return None, "no file was changed"
        if self.repo is None:
            return None, self.no_repo
        try:
            data = self.repo.diff(record.base_commit, record.commit)
        except BatonError as error:
            return None, f"it cannot be read any more: {error.message}"
        return read_diff(data, first, limit), None

    def _attempt(self, record: AttemptRecord) -> AttemptShown:
        return AttemptShown(record, self._text(record, "brief"), self._text(record, "report"))

    def _text(self, record: AttemptRecord, name: str) -> Excerpt | None:
        if record.task_id not in self.refs:
            self.refs[record.task_id] = self.house.ledger.artifact_refs(self.run.run_id, record.task_id)
        for ref in self.refs[record.task_id]:
            if ref.name == name and ref.attempt == record.attempt:
                return excerpt(self.house.artifacts, ref.artifact)
        return None

    def _check(self, check: CheckResult, claimed: set[str]) -> CheckRow:
        output = None if check.output is None else excerpt(self.house.artifacts, check.output)
        return CheckRow(check, check.command in claimed, output)


def file_rows(result: AttemptResult) -> list[FileRow]:
    """The files that changed, then those that are only claimed. Pure."""
    claimed = {_plain(path) for path in result.claim.files_changed} if result.claim is not None else set()
    rows = [
        FileRow(
            change.path,
            change.kind,
            change.path in claimed or (change.old_path or "") in claimed,
            change.old_path,
            change.mode,
        )
        for change in result.evidence.changes
    ]
    changed = {path for row in rows for path in (row.path, row.old_path)}
    return rows + [FileRow(path, None, True) for path in sorted(claimed) if path not in changed]


def _plain(path: str) -> str:
    return path.strip().removeprefix("./")


def _chosen(task: TaskRecord, shown: Sequence[AttemptShown], number: int | None) -> AttemptShown | None:
    if number is None and task.result is not None:
        number = task.result.attempt
    for attempt in shown:
        if attempt.record.attempt == number:
            return attempt
    with_result = [attempt for attempt in shown if attempt.result is not None]
    candidates = with_result or shown
    return candidates[-1] if candidates else None
