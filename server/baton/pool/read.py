"""From a job file to jobs that may run: every fault of every row is told at once, and then nothing runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from baton.contract.base import faults_of
from baton.contract.catalogue import ModelEntry
from baton.contract.errors import BatonError, InvalidInput
from baton.contract.job import JOB_ID, JobRow
from baton.contract.nearest import did_you_mean
from baton.contract.states import ChangeIntent
from baton.contract.task import Task
from baton.policy.model import Policy
from baton.policy.tiers import family_of, nearest_effort, plan_route, resolve_tier
from baton.pool.dependencies import circles, unknown_names
from baton.pool.disjoint import overlapping, undeclared
from baton.pool.jobs import Job, JobRoute
from baton.pool.row_files import read_prompt_file, schema_fault
from baton.pool.settings import PoolSettings
from baton.pool.strict_jsonl import read_lines
from baton.process.there import is_folder
from baton.verify.command import read_command
from baton.workspace.git import Git
from baton.workspace.locate import Site, locate
from baton.workspace.scope import Scope, read_scope

_MOST = 5


class JobsRefused(InvalidInput):
    """Raised for a job file with faults. The message tells the first few, `lines` all of them, one each."""

    def __init__(self, file: Path, faults: Sequence[tuple[int, str]]) -> None:
        ordered = sorted(dict.fromkeys(faults), key=lambda fault: fault[0])
        self.lines = tuple(f"{file}:{line}: {text}" if line else f"{file}: {text}" for line, text in ordered)
        more = f"; and {len(ordered) - _MOST} more" if len(ordered) > _MOST else ""
        super().__init__("; ".join(self.lines[:_MOST]) + more)


def read_jobs(
    file: Path, settings: PoolSettings, policy: Policy, catalogue: Sequence[ModelEntry], git: Git
) -> list[Job]:
    """The jobs of a file, in its order.

    Raises `JobsRefused` with every fault of every row; `InvalidInput` when the file cannot be read.
    """
    reader = _Reader(file, settings, policy, catalogue, git)
    jobs = [job for line, row in reader.rows() if (job := reader.job(line, row)) is not None]
    reader.check_together(jobs)
    if not reader.faults and not jobs:
        reader.fault(0, "holds no jobs")
    if reader.faults:
        raise JobsRefused(file, reader.faults)
    return jobs


@dataclass
class _Reader:
    """One reading of one file. What many rows have in common is looked up once."""

    file: Path
    settings: PoolSettings
    policy: Policy
    catalogue: Sequence[ModelEntry]
    git: Git
    faults: list[tuple[int, str]] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    """Where each id is given first."""
    graph: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What each job waits for, whatever else is wrong with its row."""
    sites: dict[Path, Site] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    """By writer."""
    _routes: dict[tuple[str | None, ...], JobRoute | str] = field(default_factory=dict)
    _folders: dict[str, Path | str] = field(default_factory=dict)
    _located: dict[Path, str | None] = field(default_factory=dict)
    _read: dict[tuple[str, ...], Scope | str] = field(default_factory=dict)

    def fault(self, line: int, text: str) -> None:
        self.faults.append((line, text))

    def rows(self) -> Iterator[tuple[int, JobRow]]:
        """The rows that are valid by themselves."""
        for line in read_lines(self.file):
            if line.row is None:
                self.fault(line.number, line.fault or "")
                continue
            name = line.row.get("id")
            if isinstance(name, str) and JOB_ID.fullmatch(name):
                first = self.lines.setdefault(name, line.number)
                if first != line.number:
                    self.fault(line.number, f"id: {name!r} is already the id of line {first}")
            wrong = [text.removeprefix(".") for text in faults_of(JobRow, line.row, "")]
            for text in wrong:
                self.fault(line.number, text)
            if not wrong:
                yield line.number, JobRow.model_validate(line.row)

    def job(self, line: int, row: JobRow) -> Job | None:
        """The job of a row, or None when it has faults."""
        before = len(self.faults)
        self.graph.setdefault(row.id, tuple(dict.fromkeys(row.depends_on)))
        prompt = self._prompt(line, row)
        route = self._route(line, row)
        workdir = self._workdir(line, row)
        self._boundary(line, row, workdir)
        if row.output_schema is not None and (wrong := schema_fault(row.output_schema)):
            self.fault(line, f"output_schema: {wrong}")
        for position, command in enumerate(row.verification_commands):
            try:
                read_command(command, f"verification_commands[{position}]")
            except InvalidInput as error:
                self.fault(line, error.message)
        if len(self.faults) > before or prompt is None or route is None or workdir is None:
            return None
        return Job(
            id=row.id,
            line=line,
            prompt=prompt,
            model=row.model,
            tier=row.tier,
            effort=row.effort,
            route=route,
            sandbox=row.sandbox,
            workdir=workdir,
            workdir_shown=row.workdir,
            safe_retry=row.safe_retry,
            isolate=row.isolate,
            ownership_scope=row.ownership_scope,
            allowed_files=tuple(row.allowed_files),
            output_schema=row.output_schema,
            timeout_seconds=row.timeout_seconds,
            verification_commands=tuple(
                one if isinstance(one, str) else tuple(one) for one in row.verification_commands
            ),
            depends_on=tuple(dict.fromkeys(row.depends_on)),
            labels=tuple(row.labels),
            fingerprint=fingerprint(row, prompt),
        )

    def check_together(self, jobs: Sequence[Job]) -> None:
        """What no row shows by itself: names that lead nowhere, circles, writers that could collide."""
        graph, where = self.graph, self.lines
        for name, text in unknown_names(graph, where):
            self.fault(where[name], f"depends_on: {text}")
        for circle in circles(graph):
            shown = (
                " -> ".join((*circle[:10], "…")) if len(circle) > 10 else " -> ".join((*circle, circle[0]))
            )
            self.fault(where[circle[0]], f"depends_on: goes round in a circle: {shown}")
        writers = [job for job in jobs if job.writes]
        if self.settings.write_concurrency <= 1 or self.faults:
            return
        for job in undeclared(writers):
            needed = "with more than one writer at once each needs an ownership_scope or allowed_files"
            self.fault(job.line, f"ownership_scope: missing; {needed}")
        if self.faults:
            return
        for one, other, path in overlapping(writers, self.scopes, graph, self.sites, self.git):
            advice = "narrow their scopes, let one depend on the other, or run one writer at a time"
            self.fault(
                other.line, f"ownership_scope: {other.id} and {one.id} may both change {path}; {advice}"
            )

    def _prompt(self, line: int, row: JobRow) -> str | None:
        if (row.prompt is None) == (row.prompt_file is None):
            self.fault(line, "prompt: give either prompt or prompt_file")
            return None
        if row.prompt_file is None:
            return row.prompt
        try:
            return read_prompt_file(row.prompt_file, self.file, self.settings.project)
        except ValueError as fault:
            self.fault(line, f"prompt_file: {fault}")
            return None

    def _route(self, line: int, row: JobRow) -> JobRoute | None:
        asked = (row.model, row.tier, row.effort)
        if asked not in self._routes:
            try:
                self._routes[asked] = resolve_route(row, self.policy, self.catalogue)
            except InvalidInput as error:
                self._routes[asked] = error.message
        route = self._routes[asked]
        if isinstance(route, str):
            self.fault(line, route)
            return None
        return route

    def _workdir(self, line: int, row: JobRow) -> Path | None:
        if row.workdir not in self._folders:
            self._folders[row.workdir] = _folder(row.workdir, self.settings.project)
        found = self._folders[row.workdir]
        if isinstance(found, str):
            self.fault(line, f"workdir: {found}")
            return None
        return found

    def _boundary(self, line: int, row: JobRow, workdir: Path | None) -> None:
        """What a row says of writing must fit together, and its folder must be one that can be written in."""
        if row.sandbox == "read-only":
            for key in ("allowed_files", "isolate"):
                if getattr(row, key):
                    self.fault(line, f"{key}: only for a writer; this job's sandbox is read-only")
            return
        if row.isolate and row.output_schema is not None:
            self.fault(line, "output_schema: an isolated job answers with Baton's own report; leave one out")
        if row.isolate and row.model is not None and not self._has_tier(row.model):
            self.fault(
                line, f"isolate: runs on a tier, and none of the policy means {row.model}; name a tier"
            )
        scope = self._scope(line, row)
        if scope is not None:
            self.scopes[row.id] = scope
        if workdir is None:
            return
        if workdir not in self._located:
            try:
                self.sites[workdir] = locate(workdir, self.git)
                self._located[workdir] = None
            except BatonError as error:
                self._located[workdir] = error.message
        wrong = self._located[workdir]
        if wrong is not None:
            self.fault(line, f"workdir: no place for a writer: {wrong}")

    def _has_tier(self, model: str) -> bool:
        """Whether some tier stands for a model."""
        for tier in self.policy.tiers:
            try:
                if resolve_tier(self.policy, tier, self.catalogue).slug == model:
                    return True
            except InvalidInput:
                continue
        return False

    def _scope(self, line: int, row: JobRow) -> Scope | None:
        """Everything that the row names: what it owns and what it may change."""
        owned = (row.ownership_scope,) if row.ownership_scope else ()
        patterns = (*row.allowed_files, *owned) or ("**",)
        if patterns not in self._read:
            task = Task(objective="-", allowed_files=list(patterns), change_intent=ChangeIntent.OPTIONAL)
            try:
                self._read[patterns] = read_scope(task)
            except InvalidInput as error:
                self._read[patterns] = error.message
        scope = self._read[patterns]
        if isinstance(scope, str):
            key = "allowed_files" if row.allowed_files else "ownership_scope"
            self.fault(line, scope.replace("allowedFiles", key))
            return None
        return scope


def resolve_route(row: JobRow, policy: Policy, catalogue: Sequence[ModelEntry]) -> JobRoute:
    """Model and effort for what a row names. Raises `InvalidInput` when Codex or the policy has no such."""
    if row.model is None:
        plan = plan_route(policy, catalogue, role=None, tier=row.tier, effort=row.effort)
        return JobRoute(plan.model.slug, plan.effort.effort, plan.tier, plan.effort.note)
    if row.tier is not None:
        raise InvalidInput("model, tier: name one of them, not both")
    entry = next((one for one in catalogue if one.slug == row.model), None)
    if entry is None:
        listed = [one.slug for one in catalogue if one.listed]
        advice = did_you_mean(row.model, listed, "it has: " + ", ".join(listed[:12]))
        raise InvalidInput(f"model: the installed Codex has no model {row.model!r}; {advice}")
    tiers = (tier for tier in policy.tiers.values() if tier.family == family_of(entry.slug))
    tier = next(tiers, None)
    asked = row.effort or (tier.default_effort if tier else entry.default_effort)
    if asked is None:
        return JobRoute(entry.slug, None)
    effort = nearest_effort(asked, entry)
    return JobRoute(entry.slug, effort.effort, None, effort.note)


def fingerprint(row: JobRow, prompt: str) -> str:
    """SHA-256 over what shapes a row's work.

    Left out is what only says when, how often or how long it is tried, and where on this machine it lies: a
    repository that moved has the same jobs.
    """
    apart = {"prompt", "prompt_file", "safe_retry", "timeout_seconds", "depends_on", "labels"}
    shape = {**row.model_dump(mode="json", exclude=apart), "prompt": prompt}
    text = json.dumps(shape, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _folder(named: str, project: Path) -> Path | str:
    """The real path of a working folder, or why there is none."""
    try:
        folder = (project / Path(named).expanduser()).resolve(strict=True)
    except FileNotFoundError:
        return f"no such folder: {named}"
    except (OSError, RuntimeError, ValueError) as error:
        return f"{named} cannot be used: {getattr(error, 'strerror', None) or error}"
    if not is_folder(folder):
        return f"not a folder: {named}"
    if not _is_text(str(folder)):
        return f"{str(folder)!a} cannot be used: the path is no UTF-8, which is all that Codex takes"
    return folder


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
